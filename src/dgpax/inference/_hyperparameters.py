"""Hyperparameters as a posterior in place of a point: predictions are a mixture over several values of them."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.special import logsumexp

from ..data import Dataset
from ..fits import Ensemble, FitReport
from ..linalg import even_normals
from ..model import DeepGP
from ..objectives import AbstractTerms
from ..parameters import log_jacobian
from ..typing import Array, Bool, Float
from ._base import Problem
from ._outcome import Outcome, gp_outcome

WEAK_SPREAD = 2.0
"""Standard deviation of the logarithm of a positive hyperparameter, before the data: a factor of 50 either way."""
WIDEST = 3.0
"""Standard deviation, of raw values, of what the data say next to nothing about."""
DIFFERENCE = 1e-3
AT_ONCE = 8


class WithJacobian(AbstractTerms):
    """An objective as the log density of raw values, up to the priors, which are added to every objective."""

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
    points, log_weights = _laplace_draws(problem, _is_hyperparameter(problem), method.num_draws)
    weights = np.exp(log_weights - logsumexp(log_weights))
    weights = np.minimum(weights, np.sqrt(len(weights)) / len(weights))
    weights /= weights.sum()
    effective = float(1.0 / np.sum(weights**2))
    details = {"hyperparameter_draws": len(points), "effective_draws": effective}
    return _ensemble(method, problem, points, weights, model, data, scaled, details)


def _ensemble(method, problem: Problem, points, weights, model, data, scaled, details) -> Outcome:
    unravel = ravel_pytree(problem.trainable())[1]
    outcomes = [gp_outcome(method, problem.at(unravel(jnp.asarray(p))), model, data, scaled) for p in points]
    heaviest = outcomes[int(np.argmax(weights))]

    def make(report: FitReport) -> Ensemble:
        return Ensemble([outcome.make(report) for outcome in outcomes], weights, report)

    jitter = max(outcome.largest_jitter for outcome in outcomes)
    clipped = max(outcome.clipped_variances for outcome in outcomes)
    return Outcome(heaviest.model, make, jitter, clipped, details, ())


def _is_hyperparameter(problem: Problem) -> Bool[np.ndarray, " n"]:
    """Of every trained number: inducing variables belong to the approximation, not to the model."""

    def mark(path, leaf):
        return jnp.full(leaf.shape, ".inducing" not in jax.tree_util.keystr(path))

    return np.asarray(ravel_pytree(jax.tree_util.tree_map_with_path(mark, problem.trainable()))[0])


def _laplace_draws(problem: Problem, moving: Bool[np.ndarray, " n"], num_draws: int):
    """Points [S, n] of N(θ, H⁻¹), H the curvature of −log p by differences of gradients, and log p less their log
    density. A direction that says next to nothing gets a standard deviation of 3; no draw stands where p isn't finite.
    """
    centre = np.asarray(ravel_pytree(problem.trainable())[0], float)
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
    loss, _ = _evaluated(problem, points)
    log_weights = np.where(np.isfinite(loss), -loss, -np.inf) + 0.5 * np.sum(z**2, axis=1)
    if not np.any(np.isfinite(log_weights)):
        return centre[None], np.zeros(1)
    return points, log_weights


def _evaluated(problem: Problem, points: Float[np.ndarray, "K n"]) -> tuple[np.ndarray, np.ndarray]:
    """Losses and their slopes, some at a time, so that one program serves any number of points."""
    missing = -len(points) % AT_ONCE
    blocks = np.concatenate([points, np.tile(points[:1], (missing, 1))]).reshape(-1, AT_ONCE, points.shape[1])
    losses, slopes = zip(*(_losses_and_slopes(problem, jnp.asarray(block)) for block in blocks), strict=True)
    return np.concatenate(losses)[: len(points)], np.concatenate(slopes)[: len(points)]


@eqx.filter_jit
def _losses_and_slopes(problem: Problem, points: Float[Array, "K n"]):
    unravel = ravel_pytree(problem.trainable())[1]

    def one(point):
        return problem.loss(unravel(point), jr.key(0))[0]

    return jax.lax.map(jax.value_and_grad(one), points)
