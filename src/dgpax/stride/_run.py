"""A fit while it goes on, and what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import equinox as eqx
import numpy as np

from ._cross_approximation import CrossApproximatedHidden
from ._diagnostics import effective_sample_size, split_r_hat
from ._predict import StrideFit
from ._problem import Posterior
from ._report import StrideReport
from ._samplers import Chains


@dataclass
class Run:
    """A fit while it goes on."""

    posterior: Posterior
    chains: Chains
    done: int = 0
    seconds: float = 0.0
    acceptance: list[float] = field(default_factory=list)
    log_likelihood: list[float] = field(default_factory=list)
    bound: list[float] = field(default_factory=list)
    exchanged: list[int] = field(default_factory=list)
    draws: np.ndarray | None = None
    never_moved: int = 0
    interrupted: bool = False

    def continue_from(self, report: StrideReport) -> None:
        self.seconds = report.seconds
        self.acceptance, self.log_likelihood = list(report.acceptance_rate), list(report.log_likelihood)
        self.bound, self.exchanged = list(report.bound), list(report.exchanged)

    def record(self, info) -> None:
        """What an expectation step did."""
        accepted = np.asarray(info.accepted)
        self.draws = np.asarray(info.log_likelihood)
        self.acceptance.append(float(np.mean(accepted)))
        self.log_likelihood.append(float(np.mean(self.draws)))
        self.never_moved = int(np.sum(~accepted.any(axis=0)))


def conclude(run: Run, data, initial, method, sampler, schedule, seed, seconds_initial) -> StrideFit:
    """The fit as it stands, with its report."""
    draws = np.zeros((0, run.chains.num_particles)) if run.draws is None else run.draws
    hidden = run.posterior.hidden
    report = StrideReport(
        num_rows=data.num_rows,
        num_particles=run.chains.num_particles,
        iterations=run.done,
        seconds=run.seconds,
        seconds_initial=seconds_initial,
        proposal_scale=float(run.chains.scale),
        frozen=run.done > schedule.warm_up_iterations,
        effective_sample_size=effective_sample_size(draws),
        r_hat=split_r_hat(draws),
        never_moved=run.never_moved,
        hidden_error=float(hidden.relative_error) if isinstance(hidden, CrossApproximatedHidden) else float("nan"),
        acceptance_rate=np.asarray(run.acceptance),
        log_likelihood=np.asarray(run.log_likelihood),
        bound=np.asarray(run.bound),
        exchanged=np.asarray(run.exchanged),
        interrupted=run.interrupted,
    )
    return StrideFit(
        posterior=run.posterior,
        chains=run.chains,
        tops=_tops(run.posterior, run.chains.position, schedule.at_once(run.posterior, run.chains.num_particles)),
        initial=initial,
        method=method,
        sampler=sampler,
        schedule=replace(schedule, num_iterations=run.done),
        seed=seed,
        report=report,
        num_inputs=data.num_inputs,
        input_names=data.input_names,
    )


@eqx.filter_jit
def _tops(posterior: Posterior, position, at_once: int):
    return posterior.each(posterior.condition, position, at_once)
