"""By how much the collapsed bound changes when an inducing point leaves or joins, in closed form."""

from __future__ import annotations

import jax.numpy as jnp

from ..linalg import matmul, safe_cholesky, solve_lower
from ..typing import Array, Float, Int, Scalar
from ._bound import Factors
from ._covariance import AbstractCovariance

DETERMINED = 1e-10
"""A candidate with less than this part of its variance left is determined by the points there are."""


def removal_gains(factors: Factors, noise_variance: Scalar) -> Float[Array, " M"]:
    """F_V without the inducing point i less F_V with it, for all i at once: O(N·M²) in place of O(N·M³).

    With T = K_mn K_nm, Σ = K_mm + T/γ² and w = Σ⁻¹K_mn y:
    ΔF = −½ log[Σ⁻¹]_ii + ½ log[K_mm⁻¹]_ii − w_i²/(2γ⁴[Σ⁻¹]_ii) − [K_mm⁻¹TK_mm⁻¹]_ii/(2γ²[K_mm⁻¹]_ii).
    """
    prior = factors.inverse_root
    posterior = solve_lower(factors.root, prior)
    prior_precision = jnp.sum(prior**2, axis=0)
    posterior_precision = jnp.sum(posterior**2, axis=0)
    weights = matmul(posterior.T, factors.projected)
    explained = jnp.sum(prior * matmul(matmul(factors.A.T, factors.A), prior), axis=0)
    per_output = 0.5 * jnp.log(prior_precision / posterior_precision)
    per_output = per_output - 0.5 * explained / (noise_variance * prior_precision)
    return factors.projected.shape[1] * per_output - 0.5 * jnp.sum(weights**2, axis=1) / posterior_precision


def addition_gains(
    covariance: AbstractCovariance,
    features: Float[Array, "N E"],
    A: Float[Array, "N M"],
    candidates: Int[Array, " J"],
    y: Float[Array, "N P"],
    noise_variance: Scalar,
) -> Float[Array, " J"]:
    """F_V with the row j as one more inducing point less F_V without it, for all candidates: O(N·M·(M + J)).

    With A = L⁻¹K_mn, B = I + AAᵀ/γ², α = (k_j − A_jᵀA)/√d_j, d_j = k_jj − |A_j|², b = Aα/γ²,
    s = 1 + |α|²/γ² − bᵀB⁻¹b and e = αᵀy − bᵀB⁻¹Ay: ΔF = −½ log s + e²/(2γ⁴s) + |α|²/(2γ²). It is 0 for a row that
    the inducing points determine. Columns of zeros in A stand for points that aren't there yet.
    """
    P = y.shape[1]
    B = jnp.eye(A.shape[1], dtype=A.dtype) + matmul(A.T, A) / noise_variance
    root = safe_cholesky(B, jitter=0.0).factor
    residual, left, free = _residuals(covariance, features, A, candidates)
    products = matmul(jnp.concatenate([A, y], axis=1).T, residual) / jnp.sqrt(left)
    b = solve_lower(root, products[:-P]) / noise_variance
    norm = jnp.sum(residual**2, axis=0) / (left * noise_variance)
    s = 1.0 + norm - jnp.sum(b**2, axis=0)
    e = products[-P:] - matmul(solve_lower(root, matmul(A.T, y)).T, b)
    gains = 0.5 * P * (norm - jnp.log(s)) + 0.5 * jnp.sum(e**2, axis=0) / (noise_variance**2 * s)
    return jnp.where(free, gains, 0.0)


def new_columns(
    covariance: AbstractCovariance, features: Float[Array, "N E"], A: Float[Array, "N M"], candidates: Int[Array, " J"]
):
    """The columns that the candidates would add to A, α above, and which candidates aren't determined already."""
    residual, left, free = _residuals(covariance, features, A, candidates)
    return residual / jnp.sqrt(left), free


def _residuals(covariance, features, A, candidates):
    """k_j − A_jᵀA as columns, d_j (1 where it is next to nothing), and where it isn't."""
    left = covariance.variance - jnp.sum(A[candidates] ** 2, axis=1)
    free = left > DETERMINED * covariance.variance
    residual = covariance(features, features[candidates]) - matmul(A, A[candidates].T)
    return residual, jnp.where(free, left, 1.0), free
