"""Flows of a Gaussian vector field and their KL, by plain formulas in NumPy."""

from __future__ import annotations

import numpy as np


def rbf(x: np.ndarray, y: np.ndarray, lengthscale: float, variance: float) -> np.ndarray:
    return variance * np.exp(-0.5 * ((x[:, None] - y[None]) / lengthscale) ** 2)


def euler(x: np.ndarray, z: np.ndarray, u: np.ndarray, lengthscale: float, variance: float, steps: int) -> np.ndarray:
    """The flow at time 1 of the mean field k(x, z) K⁻¹ u, without noise: plain Euler steps, every x by itself."""
    weights = np.linalg.solve(rbf(z, z, lengthscale, variance), u)
    for _ in range(steps):
        x = x + rbf(x, z, lengthscale, variance) @ weights / steps
    return x


def noisy_euler(
    x: np.ndarray, z: np.ndarray, u: np.ndarray, lengthscale: float, variance: float, increments: np.ndarray
) -> np.ndarray:
    """Euler-Maruyama steps with increments dW that all x share."""
    K = rbf(z, z, lengthscale, variance)
    h = 1.0 / len(increments)
    for dW in increments:
        k = rbf(x, z, lengthscale, variance)
        residual = variance - np.sum(k * np.linalg.solve(K, k.T).T, axis=1)
        x = x + h * k @ np.linalg.solve(K, u) + np.sqrt(np.maximum(residual, 0.0)) * dW
    return x


def dense_kl(mean: np.ndarray, covariance: np.ndarray, prior: np.ndarray) -> float:
    """KL(N(m, S) || N(0, K)), determinants and all."""
    trace = np.trace(np.linalg.solve(prior, covariance))
    determinants = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(covariance)[1]
    return 0.5 * float(trace + mean @ np.linalg.solve(prior, mean) - len(mean) + determinants)
