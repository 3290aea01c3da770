"""The collapsed bound of a sparse GP whose inducing points are rows of the data."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from ..linalg import lower_product, matmul, safe_cholesky, safe_inverse_cholesky, solve_lower
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
    jitter: Scalar


class Cross(NamedTuple):
    """A sparse GP before it has seen y: L⁻¹, the jitter that K_mm took, and `wide` Aᵀ = L⁻¹K_mn."""

    inverse_root: Float[Array, "M M"]
    jitter: Scalar
    wide: Float[Array, "M N"]


def factorise(
    covariance: AbstractCovariance,
    features: Float[Array, "N E"],
    rows: Int[Array, " M"],
    y: Float[Array, "N P"],
    noise_variance: Scalar,
) -> Factors:
    """The sparse GP with these rows as inducing points: O(N·M²)."""
    inverse_root, jitter, wide = whitened_cross(covariance, features, rows)
    root = safe_cholesky(_precision(wide, noise_variance), jitter=0.0).factor
    projected = solve_lower(root, matmul(wide, y)) / noise_variance
    return Factors(inverse_root, wide.T, root, projected, jitter)


def whitened_cross(covariance: AbstractCovariance, features: Float[Array, "N E"], rows: Int[Array, " M"]) -> Cross:
    """Of the GP with these rows as inducing points."""
    inducing = features[rows]
    inverse_root, jitter, _ = safe_inverse_cholesky(covariance(inducing, inducing))
    return Cross(inverse_root, jitter, lower_product(inverse_root, covariance(inducing, features)))


def sparse_log_likelihood(wide: Float[Array, "M N"], y: Float[Array, "N P"], noise_variance: Scalar) -> Scalar:
    """log N(y | 0, AAᵀ + γ²I), summed over outputs, of wide = Aᵀ: the likelihood of the hidden layers.

    By Woodbury's and Weinstein & Aronszajn's identities [STRIDE, section 3.1]: the Cholesky factor of
    [B Aᵀy/γ²; yᵀA/γ² yᵀy/γ²] has the root of B first, and last that of yᵀ(AAᵀ + γ²I)⁻¹y.
    """
    (M, N), P = wide.shape, y.shape[1]
    side = matmul(wide, y) / noise_variance
    both = jnp.block([[_precision(wide, noise_variance), side], [side.T, matmul(y.T, y) / noise_variance]])
    root = safe_cholesky(both, jitter=0.0).factor
    log_determinant = 2.0 * jnp.sum(jnp.log(jnp.diagonal(root)[:M])) + N * jnp.log(noise_variance)
    return -0.5 * (P * (N * LOG_2PI + log_determinant) + jnp.sum(root[M:, M:] ** 2))


def collapsed_bound(
    covariance: AbstractCovariance,
    features: Float[Array, "N E"],
    rows: Int[Array, " M"],
    y: Float[Array, "N P"],
    noise_variance: Scalar,
) -> Scalar:
    """F_V: the log-likelihood above less tr(K_nn − K_nm K_mm⁻¹ K_mn)/(2γ²) per output [STRIDE, eq. 3]."""
    wide = whitened_cross(covariance, features, rows).wide
    missed = y.shape[0] * covariance.variance - jnp.sum(wide**2)
    return sparse_log_likelihood(wide, y, noise_variance) - 0.5 * y.shape[1] * missed / noise_variance


def _precision(wide: Float[Array, "M N"], noise_variance: Scalar) -> Float[Array, "M M"]:
    """B = I + AᵀA/γ², of wide = Aᵀ."""
    return jnp.eye(wide.shape[0], dtype=wide.dtype) + matmul(wide, wide.T) / noise_variance
