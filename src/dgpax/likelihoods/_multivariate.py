"""Gaussian densities of the outputs of a row together, of which some may be missing."""

from __future__ import annotations

import jax.numpy as jnp

from ..linalg import log_diagonal, safe_cholesky, solve_lower
from ..typing import Array, Bool, Float
from ._integrals import LOG_2PI


def pairs(observed: Bool[Array, "*batch N P"]) -> Bool[Array, "*batch N P P"]:
    """Which entries of a covariance belong to two observed outputs."""
    return observed[..., :, None] & observed[..., None, :]


def observed_block(
    covariance: Float[Array, "*#batch P P"], observed: Bool[Array, "*#batch P"]
) -> Float[Array, "*batch P P"]:
    """The covariance with rows and columns of missing outputs replaced by those of the identity."""
    return jnp.where(pairs(observed), covariance, jnp.eye(observed.shape[-1], dtype=covariance.dtype))


def log_normal_together(
    mean: Float[Array, "*batch N P"], covariance: Float[Array, "*#covariances P P"], y: Float[Array, "*#batch N P"]
) -> Float[Array, "*batch N"]:
    """log N(y; mean, covariance) of the observed outputs; a missing one enters as a residual 0 of variance 1."""
    observed = ~jnp.isnan(y)
    residual = jnp.where(observed, jnp.where(observed, y, 0.0) - mean, 0.0)
    factor = safe_cholesky(observed_block(covariance, observed), jitter=0.0).factor
    whitened = solve_lower(factor, residual[..., None])[..., 0]
    log_det = jnp.sum(log_diagonal(factor), axis=-1)
    return -0.5 * (LOG_2PI * jnp.sum(observed, axis=-1) + jnp.sum(whitened**2, axis=-1)) - log_det
