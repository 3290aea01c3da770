"""Hyperparameters as a posterior in place of a point: predictions are a mixture over several values of them."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from scipy.special import logsumexp

from ..data import Dataset
from ..fits import Ensemble, FitReport
from ..linalg import even_normals
from ..model import DeepGP
from ..objectives import AbstractTerms
from ..parameters import find, log_jacobian
from ..typing import Array, Float, PyTree
from ._base import Problem
from ._outcome import Outcome, gp_outcome

WIDEST = 3.0
"""Standard deviation, on the free scale, of what the data say next to nothing about."""
DIFFERENCE = 1e-3
AT_ONCE = 8


class WithJacobian(AbstractTerms):
    """An objective as the log density on the free scale, up to the priors, which are added to every objective."""

    own: AbstractTerms
    log_jacobian: Float[Array, ""]

    @classmethod
    def of(cls, own: AbstractTerms, model: DeepGP) -> WithJacobian:
        return cls(own, log_jacobian(model))

    @property
    def jitter(self):
        return self.own.jitter

    @property
    def total(self):
        return self.own.total + self.log_jacobian


def averaged_outcome(method: Any, target: DeepGP, model: DeepGP, data: Dataset, scaled: Dataset) -> Outcome:
    """A mixture over draws from the Laplace approximation at the highest density, weighed by what they are worth.

    The weights are those of importance sampling, none larger than √S times their mean [Ionides 2008].
    """
    problem = Problem(method, target, method.prepare(target, scaled))
    values, log_weights = _laplace_draws(problem, method.num_draws)
    weights = np.exp(log_weights - logsumexp(log_weights))
    weights = np.minimum(weights, np.sqrt(len(weights)) / len(weights))
    weights /= weights.sum()
    effective = float(1.0 / np.sum(weights**2))
    outcomes = [gp_outcome(method, problem.at(value), model, data, scaled) for value in values]

    def make(report: FitReport) -> Ensemble:
        return Ensemble([outcome.make(report) for outcome in outcomes], weights, report)

    return Outcome(
        outcomes[int(np.argmax(weights))].model,
        make,
        max(outcome.largest_jitter for outcome in outcomes),
        max(outcome.clipped_variances for outcome in outcomes),
        {"hyperparameter_draws": len(values), "effective_draws": effective},
        (),
    )


def _laplace_draws(problem: Problem, num_draws: int):
    """Trained values, and log p less the log density of the proposal, of draws from N(θ, H⁻¹) on the free scale, H the
    curvature of −log p by differences of slopes.

    Inducing variables, which belong to the approximation, stay. A direction that the data say next to nothing about
    gets a standard deviation of 3.
    """
    parameters = {name: p for name, p in find(problem.target).items() if p.trainable}
    moving = np.concatenate([np.full(p.raw.size, ".inducing" not in name) for name, p in parameters.items()])
    centre = np.concatenate([np.ravel(p.free) for p in parameters.values()]).astype(float)
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
    return [_at_free(problem, jnp.asarray(point)) for point in points], log_weights


def _evaluated(problem: Problem, points: Float[np.ndarray, "K n"]) -> tuple[np.ndarray, np.ndarray]:
    """Losses and their slopes, some at a time, so that one program serves any number of points."""
    missing = -len(points) % AT_ONCE
    blocks = np.concatenate([points, np.tile(points[:1], (missing, 1))]).reshape(-1, AT_ONCE, points.shape[1])
    losses, slopes = zip(*(_losses_and_slopes(problem, jnp.asarray(block)) for block in blocks), strict=True)
    return np.concatenate(losses)[: len(points)], np.concatenate(slopes)[: len(points)]


@eqx.filter_jit
def _losses_and_slopes(problem: Problem, points: Float[Array, "K n"]):
    def one(point):
        return problem.loss(_at_free(problem, point), jr.key(0))[0]

    return jax.lax.map(jax.value_and_grad(one), points)


def _at_free(problem: Problem, point: Float[Array, " n"]) -> PyTree:
    """The trained values at a point of the free scale."""
    parameters = [p for p in find(problem.target).values() if p.trainable]
    ends = np.cumsum([p.raw.size for p in parameters])
    parts = zip(parameters, jnp.split(point, ends[:-1]), strict=True)
    raws = [p.at_free(part.reshape(p.raw.shape)).astype(p.raw.dtype) for p, part in parts]
    return jax.tree.unflatten(jax.tree.structure(problem.trainable()), raws)
