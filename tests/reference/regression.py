"""Gaussian process regression with Gaussian noise in NumPy, from the equations; imports nothing of dgpax.

y is [N, P] with outputs that are independent given the kernel; K_nn, K_mn, K_mm are plain covariance matrices.
"""

from __future__ import annotations

import numpy as np


def gaussian_log_density(y: np.ndarray, covariance: np.ndarray) -> float:
    """Σ_p log N(y_p; 0, covariance)."""
    _, logdet = np.linalg.slogdet(covariance)
    quadratic = np.sum(y * np.linalg.solve(covariance, y))
    return float(-0.5 * quadratic - 0.5 * y.shape[1] * (logdet + len(y) * np.log(2.0 * np.pi)))


def log_evidence(K_nn: np.ndarray, y: np.ndarray, noise_variance: float) -> float:
    """Rasmussen & Williams (2006), eq. 2.30."""
    return gaussian_log_density(y, K_nn + noise_variance * np.eye(len(y)))


def nystrom(K_mm: np.ndarray, K_mn: np.ndarray) -> np.ndarray:
    """Q_nn = K_nm K_mm⁻¹ K_mn."""
    return K_mn.T @ np.linalg.solve(K_mm, K_mn)


def collapsed_bound(
    K_mm: np.ndarray, K_mn: np.ndarray, k_nn: np.ndarray, y: np.ndarray, noise_variance: float
) -> float:
    """F_V = Σ_p log N(y_p; 0, Q_nn + σ²I) − P tr(K_nn − Q_nn)/(2σ²) [Titsias 2009, eq. 9]; k_nn is the diagonal."""
    Q = nystrom(K_mm, K_mn)
    return log_evidence(Q, y, noise_variance) - y.shape[1] * np.sum(k_nn - np.diag(Q)) / (2.0 * noise_variance)


def exact_prediction(K_nn, K_ns, K_ss, y, noise_variance: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean [S, P] and covariance [S, S] of f at new points [Rasmussen & Williams 2006, eqs. 2.23-2.24]."""
    noisy = K_nn + noise_variance * np.eye(len(y))
    return K_ns.T @ np.linalg.solve(noisy, y), K_ss - K_ns.T @ np.linalg.solve(noisy, K_ns)


def optimal_inducing_outputs(K_mm, K_mn, y, noise_variance: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean [M, P] and covariance [M, M] of the best q(u) [Titsias 2009, eq. 10]."""
    sigma = K_mm + K_mn @ K_mn.T / noise_variance
    mean = K_mm @ np.linalg.solve(sigma, K_mn @ y) / noise_variance
    return mean, K_mm @ np.linalg.solve(sigma, K_mm)


def sparse_prediction(K_mm, K_mn, K_ms, K_ss, y, noise_variance: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean [S, P] and covariance [S, S] of f at new points under the best q(u) [Titsias 2009, eq. 6]."""
    mean, covariance = optimal_inducing_outputs(K_mm, K_mn, y, noise_variance)
    projection = np.linalg.solve(K_mm, K_ms)
    return projection.T @ mean, K_ss - K_ms.T @ projection + projection.T @ covariance @ projection


def dense_gp_marginal(x, z, lengthscale, variance, whitened_mean, whitened_root):
    """Mean and variance of q(f(x)) and KL(q(u) || p(u)) of a sparse GP with an RBF kernel, by explicit inverses.

    q(u) = N(L m, L R Rᵀ Lᵀ) with LLᵀ = Kuu [DSVI, eqs. 7-8].
    """

    def k(a, b):
        return variance * np.exp(-0.5 * np.sum((a[:, None] - b[None]) ** 2, axis=-1) / lengthscale**2)

    Kuu, Kuf = k(z, z), k(z, x)
    L = np.linalg.cholesky(Kuu)
    m, S = L @ whitened_mean, L @ whitened_root @ whitened_root.T @ L.T
    alpha = np.linalg.solve(Kuu, Kuf)
    mean = alpha.T @ m
    spread = variance - np.sum(Kuf * alpha, axis=0) + np.sum(alpha * (S @ alpha), axis=0)
    log_determinants = np.linalg.slogdet(Kuu)[1] - np.linalg.slogdet(S)[1]
    kl = 0.5 * (np.trace(np.linalg.solve(Kuu, S)) + m @ np.linalg.solve(Kuu, m) - len(z) + log_determinants)
    return mean, spread, kl
