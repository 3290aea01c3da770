"""Hyperparameters as a posterior in place of a point: predictions are a mixture over several values of them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..data import Dataset
from ..fits import Ensemble, FitReport
from ..linalg import even_normals
from ..model import DeepGP
from ..objectives import AbstractTerms
from ..parameters import at_free_values, combine, find, free_values, log_jacobian, partition
from ..programs import compiled
from ..typing import Array, Float, PyTree
from ._base import Problem
from ._diagnostics import effective_sample_size, split_r_hat
from ._nuts import ModelAndDraws
from ._outcome import Outcome, gp_outcome

WIDEST = 3.0
"""Standard deviation, on the free scale, of what the data say next to nothing about."""
DIFFERENCE = 1e-3
AT_ONCE = 8
R_HAT_LIMIT = 1.1


class WithJacobian(AbstractTerms):
    """An objective as the log density on the free scale, up to the priors, which are added to every objective."""

    own: AbstractTerms
    log_jacobian: Float[Array, ""]
    jitter: Float[Array, ""]

    @classmethod
    def of(cls, own: AbstractTerms, model: DeepGP) -> WithJacobian:
        return cls(own=own, log_jacobian=log_jacobian(model), jitter=own.jitter)

    @property
    def total(self):
        return self.own.total + self.log_jacobian


def averaged_outcome(method: Any, target: DeepGP, model: DeepGP, data: Dataset, scaled: Dataset) -> Outcome:
    """A mixture over draws from the Laplace approximation at the highest density, weighed by what they are worth.

    The weights are those of importance sampling, none larger than √S times their mean [Ionides 2008].
    """
    problem = Problem(method, target, method.prepare(target, scaled))
    values, log_weights = _laplace_draws(problem, method.num_draws)
    weights = np.exp(log_weights - np.logaddexp.reduce(log_weights))
    weights = np.minimum(weights, np.sqrt(len(weights)) / len(weights))
    weights /= weights.sum()
    effective = float(1.0 / np.sum(weights**2))
    details = {"hyperparameter_draws": len(values), "effective_draws": effective}
    return _mixture(method, [problem.at(value) for value in values], weights, model, data, scaled, details, ())


def sampled_outcome(method: Any, target: ModelAndDraws, model: DeepGP, data: Dataset, scaled: Dataset) -> Outcome:
    """An equal mixture over the draws of chains, and how well these have mixed."""
    points = np.asarray(target.draws.value)
    by_chain = points.reshape(-1, method.num_chains, points.shape[-1])
    each = [by_chain[..., index] for index in range(points.shape[-1])]
    r_hat = float(np.max([split_r_hat(chains) for chains in each]))
    effective = float(np.min([effective_sample_size(chains) for chains in each]))
    details = {"hyperparameter_draws": len(points), "r_hat": r_hat, "effective_draws": effective}
    notes = () if r_hat <= R_HAT_LIMIT else (
        f"The chains haven't mixed: R̂ of hyperparameters is {r_hat:.2f}, more than {R_HAT_LIMIT}. Take more steps: "
        "NUTS(num_draws=..., num_warmup=1000, spacing=20).",
    )  # fmt: skip
    rest = partition(target.model)[1]
    targets = [combine(at_free_values(target.model, jnp.asarray(point)), rest) for point in points]
    equal = np.full(len(points), 1.0 / len(points))
    return _mixture(method, targets, equal, model, data, scaled, details, notes)


def _mixture(method, targets: list[PyTree], weights, model, data, scaled, details, notes) -> Outcome:
    """Of the fits in which the method ends at each of the targets."""
    outcomes = [gp_outcome(method, target, model, data, scaled) for target in targets]

    def make(report: FitReport) -> Ensemble:
        return Ensemble([outcome.make(report) for outcome in outcomes], weights, report)

    jitter = max(outcome.largest_jitter for outcome in outcomes)
    clipped = max(outcome.clipped_variances for outcome in outcomes)
    return Outcome(outcomes[int(np.argmax(weights))].model, make, jitter, clipped, details, notes)


def _laplace_draws(problem: Problem, num_draws: int):
    """Trained values, and log p less the log density of the proposal, of draws from N(θ, H⁻¹) on the free scale, H the
    curvature of −log p by differences of slopes.

    Inducing variables, which belong to the approximation, stay. A direction that the data say next to nothing about
    gets a standard deviation of 3.
    """
    parameters = {name: p for name, p in find(problem.target).items() if p.trainable}
    moving = np.concatenate([np.full(p.raw.size, ".inducing" not in name) for name, p in parameters.items()])
    centre = np.asarray(free_values(problem.target), float)
    size = int(moving.sum())
    steps = DIFFERENCE * np.eye(len(centre))[moving]
    _, slopes = _evaluated(problem, np.concatenate([centre + steps, centre - steps]))
    H = (slopes[:size] - slopes[size:])[:, moving] / (2.0 * DIFFERENCE)
    H = np.where(np.isfinite(H), H, 0.0)
    precision, axes = np.linalg.eigh(0.5 * (H + H.T))
    precision = np.maximum(precision, WIDEST**-2)
    z = even_normals(num_draws, size, 0)
    points = np.tile(centre, (num_draws, 1))
    points[:, moving] += (z / np.sqrt(precision)) @ axes.T
    losses, _ = _evaluated(problem, points)
    log_weights = np.where(np.isfinite(losses), -losses, -np.inf) + 0.5 * np.sum(z**2, axis=1)
    if not np.any(np.isfinite(log_weights)):
        points, log_weights = centre[None], np.zeros(1)
    return [at_free_values(problem.target, jnp.asarray(point)) for point in points], log_weights


def _evaluated(problem: Problem, points: Float[np.ndarray, "K n"]) -> tuple[np.ndarray, np.ndarray]:
    """Losses and their slopes, some at a time, so that one program serves any number of points."""
    missing = -len(points) % AT_ONCE
    blocks = np.concatenate([points, np.tile(points[:1], (missing, 1))]).reshape(-1, AT_ONCE, points.shape[1])
    losses, slopes = zip(*(_losses_and_slopes(problem, jnp.asarray(block)) for block in blocks), strict=True)
    return np.concatenate(losses)[: len(points)], np.concatenate(slopes)[: len(points)]


@compiled
def _losses_and_slopes(problem: Problem, points: Float[Array, "K n"]):
    def one(point):
        return problem.loss(at_free_values(problem.target, point), jr.key(0))[0]

    return jax.lax.map(jax.value_and_grad(one), points)
