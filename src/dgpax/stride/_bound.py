"""The collapsed bound of a sparse GP whose inducing points are rows of the data."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from ..linalg import matmul, safe_cholesky, safe_inverse_cholesky, solve_lower
from ..typing import Array, Float, Int, Scalar
from ._covariance import AbstractCovariance

LOG_2PI = 1.8378770664093453


class Factors(NamedTuple):
    """What the bound, its changes and the predictions are made of: K_mm = LLᵀ, B = I + AᵀA/γ².

    `inverse_root` is L⁻¹, `A` is K_nm L⁻ᵀ, `root` the Cholesky factor of B and `projected` root⁻¹Aᵀy/γ².
    """

    inverse_root: Float[Array, "M M"]
    A: Float[Array, "N M"]
    root: Float[Array, "M M"]
    projected: Float[Array, "M P"]


def factorise(
    covariance: AbstractCovariance,
    features: Float[Array, "N E"],
    rows: Int[Array, " M"],
    y: Float[Array, "N P"],
    noise_variance: Scalar,
) -> Factors:
    """The sparse GP with these rows as inducing points: O(N·M²)."""
    inducing = features[rows]
    inverse_root = safe_inverse_cholesky(covariance(inducing, inducing)).inverse
    wide = matmul(inverse_root, covariance(inducing, features))
    B = jnp.eye(wide.shape[0], dtype=wide.dtype) + matmul(wide, wide.T) / noise_variance
    root = safe_cholesky(B, jitter=0.0).factor
    return Factors(inverse_root, wide.T, root, solve_lower(root, matmul(wide, y)) / noise_variance)


def sparse_log_likelihood(factors: Factors, y: Float[Array, "N P"], noise_variance: Scalar) -> Scalar:
    """log N(y | 0, K_nm K_mm⁻¹ K_mn + γ²I), summed over outputs: the likelihood of the hidden layers.

    By Woodbury's and Weinstein & Aronszajn's identities [STRIDE, section 3.1].
    """
    N, P = y.shape
    log_determinant = 2.0 * jnp.sum(jnp.log(jnp.diagonal(factors.root))) + N * jnp.log(noise_variance)
    misfit = jnp.sum(y**2) / noise_variance - jnp.sum(factors.projected**2)
    return -0.5 * (P * (N * LOG_2PI + log_determinant) + misfit)


def collapsed_bound(
    covariance: AbstractCovariance,
    features: Float[Array, "N E"],
    rows: Int[Array, " M"],
    y: Float[Array, "N P"],
    noise_variance: Scalar,
) -> Scalar:
    """F_V: the log-likelihood above less tr(K_nn − K_nm K_mm⁻¹ K_mn)/(2γ²) per output [STRIDE, eq. 3]."""
    factors = factorise(covariance, features, rows, y, noise_variance)
    missed = y.shape[0] * covariance.variance - jnp.sum(factors.A**2)
    trace = 0.5 * y.shape[1] * missed / noise_variance
    return sparse_log_likelihood(factors, y, noise_variance) - trace
