"""STRIDE: Monte Carlo expectation-maximisation over hidden layers and inducing points."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax

from ..architectures._shallow import check_data
from ..data import Dataset
from ..errors import InputError, NumericalError
from ..inference._loop import suitable_blas_threads
from ..inference._progress import progress_bar
from ..kernels import AbstractKernel
from ..typing import Array, Bool, Float, Int, RandomKey
from ._architectures import AbstractArchitecture
from ._bound import collapsed_bound
from ._cross_approximation import CrossApproximatedHidden
from ._diagnostics import effective_sample_size, split_r_hat
from ._hidden import AbstractHiddenMethod, Selected, Standard
from ._initial import initial_gp
from ._predict import StrideFit
from ._problem import Posterior, start_posterior
from ._report import StrideReport
from ._samplers import PCN, AbstractSampler, Chains, run_chains
from ._selection import exchange_rows
from ._settings import Schedule
from ._top import ExactTop, SparseTop


def fit_stride(
    data: Dataset,
    architecture: AbstractArchitecture,
    num_inducing: int | None = 50,
    *,
    hidden: AbstractHiddenMethod | None = None,
    sampler: AbstractSampler | None = None,
    schedule: Schedule | None = None,
    num_particles: int = 50,
    kernel: AbstractKernel | None = None,
    noise_variance: float | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> StrideFit:
    """Sample the hidden layers of a deep GP and choose the inducing points of its top layer [STRIDE, Algorithm 1].

    Kernel and noise are those of a sparse GP that is trained first, on standardised data; a kernel and a noise variance
    (in raw units, fixed) can be given. `num_inducing=None` is the standard deep GP: no inducing points, O(N³) a step.
    `hidden` says how hidden layers are made of whitened variables (Standard, CrossApproximation, FullySparse).
    """
    check_data(data)
    architecture.check(data.num_inputs)
    if num_particles < 1:
        raise InputError(f"num_particles must be at least 1; got {num_particles}.")
    method, sampler, schedule = hidden or Standard(), sampler or PCN(), (schedule or Schedule()).resolved()
    method.check(num_inducing)
    started = time.perf_counter()
    initial = initial_gp(data, num_inducing, schedule.num_candidates, kernel, noise_variance, seed)
    seconds_initial = time.perf_counter() - started
    scaled = initial.fitted.model.to_model_units(data)
    scaled = Dataset(scaled.x, scaled.y)
    top = ExactTop() if initial.rows is None else SparseTop(initial.rows)
    posterior, whitened = start_posterior(architecture, method, top, scaled, initial.kernel, initial.noise_variance)
    position = tuple(jnp.broadcast_to(xi, (num_particles, *xi.shape)) for xi in whitened)
    scale = jnp.asarray(sampler.initial_scale, scaled.x.dtype)
    chains = _restart(posterior, position, scale, schedule.at_once(posterior, num_particles))
    if not bool(jnp.all(jnp.isfinite(chains.log_likelihood))):
        raise NumericalError("The likelihood isn't finite where the hidden layers start: raise the noise variance.")
    run = _Run(posterior, chains)
    _iterate(run, method, sampler, schedule, initial.selectable, seed, progress)
    return _conclude(run, data, initial, method, sampler, schedule, seed, seconds_initial)


def resume(fitted: StrideFit, data: Dataset, num_iterations: int, *, progress: bool | None = None) -> StrideFit:
    """More iterations of a fit on the same data: what one fit with all of them gives, bit for bit."""
    if data.num_rows != fitted.posterior.y.shape[0]:
        raise InputError(f"The fit was made on {fitted.posterior.y.shape[0]} rows; the data has {data.num_rows}.")
    schedule = replace(fitted.schedule, num_iterations=fitted.schedule.num_iterations + num_iterations)
    run = _Run(fitted.posterior, fitted.chains, done=fitted.schedule.num_iterations)
    run.continue_from(fitted.report)
    _iterate(run, fitted.method, fitted.sampler, schedule, fitted.initial.selectable, fitted.seed, progress)
    settings = fitted.method, fitted.sampler, schedule, fitted.seed, fitted.report.seconds_initial
    return _conclude(run, data, fitted.initial, *settings)


@dataclass
class _Run:
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


def _iterate(
    run: _Run,
    method: AbstractHiddenMethod,
    sampler: AbstractSampler,
    schedule: Schedule,
    selectable: Bool[Array, " N"],
    seed: int,
    progress: bool | None,
) -> None:
    """Expectation and maximisation in turn. Ctrl-C ends it after what is complete."""
    started = time.perf_counter()
    at_once = schedule.at_once(run.posterior, run.chains.num_particles)
    total = schedule.num_iterations * schedule.num_steps
    counts = schedule.num_exchanges, schedule.num_candidates
    with suitable_blas_threads(run.posterior.hidden.num_sites()), progress_bar(total, progress) as show:
        try:
            while run.done < schedule.num_iterations:
                key_chains, key_rows = jr.split(jr.fold_in(jr.key(seed), run.done))
                adapting = jnp.asarray(run.done < schedule.warm_up_iterations)
                chains, info = _expectation(
                    run.posterior, run.chains, key_chains, sampler, adapting, schedule.num_steps, at_once
                )
                posterior, chains, bound, exchanged = _maximisation(
                    run.posterior, chains, key_rows, selectable, method, counts, at_once
                )
                jax.block_until_ready(chains)
                run.posterior, run.chains = posterior, chains
                run.bound.append(float(bound))
                run.exchanged.append(int(exchanged))
                run.record(info)
                run.done += 1
                show(run.done * schedule.num_steps, run.log_likelihood[-1])
        except KeyboardInterrupt:
            run.interrupted = True
    run.seconds += time.perf_counter() - started


@eqx.filter_jit
def _restart(posterior: Posterior, position, scale: Float[Array, ""], at_once: int) -> Chains:
    return Chains(position, posterior.each(posterior.log_likelihood, position, at_once), scale)


@eqx.filter_jit
def _expectation(posterior, chains, key: RandomKey, sampler, adapting, num_steps: int, at_once: int):
    """Section 3.1."""

    def log_likelihood(position):
        return posterior.each(posterior.log_likelihood, position, at_once)

    return run_chains(sampler, chains, log_likelihood, key, num_steps=num_steps, adapting=adapting)


@eqx.filter_jit
def _maximisation(posterior: Posterior, chains: Chains, key: RandomKey, selectable, method, counts, at_once: int):
    """Section 3.2: new inducing points; then the hidden layers, re-expressed where their approximation changed."""
    features = posterior.each(posterior.features, chains.position, at_once)
    num_exchanges, num_candidates = counts
    if posterior.top.inducing is None:
        bound, exchanged = jnp.asarray(jnp.nan), jnp.asarray(0)
    else:
        rows = exchange_rows(
            posterior.prior.top,
            features,
            posterior.y,
            posterior.noise_variance,
            selectable,
            posterior.top.inducing,
            num_exchanges=num_exchanges,
            num_candidates=num_candidates,
            particles_at_once=at_once,
            key=key,
        )
        exchanged = jnp.sum(~jnp.isin(rows, posterior.top.inducing))
        bound = mean_bound(posterior, features, rows)
        posterior = eqx.tree_at(lambda p: p.top, posterior, SparseTop(rows))
    posterior, position = _re_expressed(posterior, chains.position, features, method, at_once)
    return posterior, _restart(posterior, position, chains.scale, at_once), bound, exchanged


def mean_bound(posterior: Posterior, features: Float[Array, "S N E"], rows: Int[Array, " M"]) -> Float[Array, ""]:
    """F_t, the mean of F_V over the particles [STRIDE, section 3.2]."""

    def bound(f):
        return collapsed_bound(posterior.prior.top, f, rows, posterior.y, posterior.noise_variance)

    return jnp.mean(lax.map(bound, features))


def _re_expressed(posterior: Posterior, position, features, method: AbstractHiddenMethod, at_once: int):
    """Hidden layers built for the new inducing points, and variables that represent the same values in them."""
    if isinstance(method, Standard):
        return posterior, position
    hidden = method.build(posterior.prior, Selected(posterior.top.inducing, features))

    def again(whitened):
        return hidden.whiten(posterior.prior, posterior.hidden.values(posterior.prior, whitened))

    return eqx.tree_at(lambda p: p.hidden, posterior, hidden), posterior.each(again, position, at_once)


@eqx.filter_jit
def _tops(posterior: Posterior, position, at_once: int):
    return posterior.each(posterior.condition, position, at_once)


def _conclude(run: _Run, data, initial, method, sampler, schedule, seed, seconds_initial) -> StrideFit:
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
