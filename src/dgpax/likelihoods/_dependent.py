"""Integrals over latent functions of a row that depend on each other, by evenly spread points."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import logsumexp

from ..distributions import Gaussian, GaussianOverOutputs
from ..linalg import einsum, even_normals, log_diagonal, matmul, safe_cholesky, solve_cholesky, solve_lower_transposed
from ..typing import Array, Float
from ._integrals import positive

if TYPE_CHECKING:
    from ._base import AbstractLikelihood

NUM_POINTS = 256
POINTS_AT_ONCE = 16
NARROWEST = 1e-10
"""Of what is known of f, relative to the variance it had."""


def over_points(function: Callable[[Float[Array, " K"]], Float[Array, "*shape"]], size: int, dtype):
    """A function at points z that are spread like N(0, I), [S, *shape], a few of them at a time."""
    z = jnp.asarray(even_normals(NUM_POINTS, size), dtype)
    return lax.map(jax.checkpoint(function), z, batch_size=POINTS_AT_ONCE)


def expectation(
    function: Callable[[Float[Array, "*batch N Q"]], Float[Array, "*shape"]], q: GaussianOverOutputs
) -> Float[Array, "*shape"]:
    """E[function(f)] of a smooth function."""
    root = safe_cholesky(q.covariance).factor
    values = over_points(lambda z: function(q.mean + einsum("...ij,j->...i", root, z)), q.mean.shape[-1], q.mean.dtype)
    return jnp.mean(values, axis=0)


def log_density_together(
    likelihood: AbstractLikelihood, q: GaussianOverOutputs, y: Float[Array, "*#batch N P"]
) -> Float[Array, "*batch N"]:
    """log ∫ p(y_n | f_n) q(f_n) df_n by importance sampling, exact where log p(y | f) is quadratic in f.

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

    log_weights = over_points(log_weight, root.shape[-1], root.dtype)
    return logsumexp(log_weights, axis=0) - jnp.log(len(log_weights)) - jnp.sum(log_diagonal(factor), axis=-1)
