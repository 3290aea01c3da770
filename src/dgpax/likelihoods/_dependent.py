"""Integrals over latent functions of a row that depend on each other, by a fixed rule of few points."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import logsumexp

from ..distributions import Gaussian, GaussianOverOutputs
from ..linalg import einsum, log_diagonal, matmul, normal_rule, safe_cholesky, solve_cholesky, solve_lower_transposed
from ..typing import Array, Float
from ._integrals import positive

if TYPE_CHECKING:
    from ._base import AbstractLikelihood

NUM_POINTS = 256
POINTS_AT_ONCE = 16
NARROWEST = 1e-10
"""Of what is known of f, relative to the variance it had."""


def over_points(
    function: Callable[[Float[Array, " K"]], Float[Array, "*shape"]], points: Float[Array, "S K"]
) -> Float[Array, "S *shape"]:
    """A function at every point, a few of them at a time."""
    return lax.map(jax.checkpoint(function), points, batch_size=POINTS_AT_ONCE)


def expectation(
    function: Callable[[Float[Array, "*batch N Q"]], Float[Array, "*shape"]], q: GaussianOverOutputs
) -> Float[Array, "*shape"]:
    """E[function(f)] of a smooth function."""
    root = safe_cholesky(q.covariance).factor
    points, weights = (jnp.asarray(part, root.dtype) for part in normal_rule(NUM_POINTS, root.shape[-1]))
    values = over_points(lambda z: function(q.mean + einsum("...ij,j->...i", root, z)), points)
    return jnp.tensordot(weights, values, axes=1, precision="highest")


def log_density_together(
    likelihood: AbstractLikelihood, q: GaussianOverOutputs, y: Float[Array, "*#batch N P"]
) -> Float[Array, "*batch N"]:
    """log ∫ p(y_n | f_n) q(f_n) df_n by adaptive quadrature, exact where log p(y | f) is quadratic in f.

    The points are those of a Gaussian, held fixed in derivatives: q times a Gaussian in the place of each p(y | f_i),
    under which f_i by itself has the mean and the variance that p(y | f_i) gives it.
    """
    mean, variance = lax.stop_gradient((q.mean, positive(q.variance)))
    slope = jax.grad(lambda mean: jnp.sum(likelihood.predictive_log_prob(Gaussian(mean, variance), y)))
    left = jnp.maximum(1.0 + variance * jax.grad(lambda mean: jnp.sum(slope(mean)))(mean), NARROWEST)
    pull, precision = slope(mean) / left, jnp.maximum((1.0 / left - 1.0) / variance, 0.0)

    root = safe_cholesky(q.covariance).factor
    fixed = lax.stop_gradient(root)
    known = jnp.eye(root.shape[-1], dtype=root.dtype) + matmul(fixed.mT * precision[..., None, :], fixed)
    factor = safe_cholesky(known, jitter=0.0).factor
    centre = solve_cholesky(factor, matmul(fixed.mT, pull[..., None]))

    def log_weight(e):
        z = (centre + solve_lower_transposed(factor, jnp.broadcast_to(e[:, None], centre.shape)))[..., 0]
        f = q.mean + einsum("...ij,...j->...i", root, z)
        return likelihood.log_prob(f, y) + 0.5 * (jnp.sum(e**2) - jnp.sum(z**2, axis=-1))

    points, weights = normal_rule(NUM_POINTS, root.shape[-1])
    log_weights = over_points(log_weight, jnp.asarray(points, root.dtype))
    log_weights += jnp.asarray(np.log(weights), root.dtype).reshape(-1, *[1] * (log_weights.ndim - 1))
    return logsumexp(log_weights, axis=0) - jnp.sum(log_diagonal(factor), axis=-1)
