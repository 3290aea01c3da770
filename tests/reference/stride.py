"""STRIDE in plain NumPy, by the definitions: nothing closed-form, nothing clever."""

from __future__ import annotations

import numpy as np


def rbf(f, g, lengthscale, variance):
    d = f[:, None, :] / lengthscale - g[None, :, :] / lengthscale
    return variance * np.exp(-0.5 * np.sum(d**2, axis=-1))


def paciorek_rbf(x, local, variance, *, printed: bool = False):
    """σ² φ ρ with h = local²; `printed` has the argument 2r/(h + h′) of the paper in place of √2 r/√(h + h′)."""
    d, h = x.shape[1], local**2
    total = h[:, None] + h[None, :]
    prefactor = 2 ** (d / 2) * np.outer(h, h) ** (d / 4) / total ** (d / 2)
    r = np.sqrt(np.sum((x[:, None] - x[None]) ** 2, axis=-1))
    argument = 2 * r / total if printed else np.sqrt(2) * r / np.sqrt(total)
    return variance * prefactor * np.exp(-0.5 * argument**2)


def low_rank(K, rows):
    return K[:, rows] @ np.linalg.solve(K[np.ix_(rows, rows)], K[rows])


def log_likelihood(Q, y, noise_variance):
    """log N(y | 0, Q + γ²I), summed over the columns of y."""
    C = Q + noise_variance * np.eye(len(Q))
    _, log_determinant = np.linalg.slogdet(2 * np.pi * C)
    return -0.5 * (y.shape[1] * log_determinant + np.sum(y * np.linalg.solve(C, y)))


def bound(K, rows, y, noise_variance):
    """F_V [STRIDE, eq. 3], constants included; without inducing points Q = 0."""
    Q = low_rank(K, rows) if len(rows) else np.zeros_like(K)
    return log_likelihood(Q, y, noise_variance) - 0.5 * y.shape[1] * np.trace(K - Q) / noise_variance


def sparse_prediction(K, k_star, variance, rows, y, noise_variance):
    """μ and k of section 2.3, with K_mn K_mn^T where the paper prints K_mn K_nn^T."""
    Kmm, Kmn, k = K[np.ix_(rows, rows)], K[rows], k_star[:, rows]
    S = Kmm + Kmn @ Kmn.T / noise_variance
    mean = k @ np.linalg.solve(S, Kmn @ y) / noise_variance
    spread = variance - np.sum(k * np.linalg.solve(Kmm, k.T).T, axis=1) + np.sum(k * np.linalg.solve(S, k.T).T, axis=1)
    return mean, spread


def jumps(x):
    """The function of Figure 1: smooth on the left, with jumps on the right [STRIDE, section 4.1]."""
    z = np.linspace(0.1, 0.4, 3001)
    bumps = np.exp(-((x[:, None] - z) ** 2) / 2e-4) / np.sqrt(2e-4 * np.pi)
    smooth = np.trapezoid(bumps * np.sin(np.pi * (z - 0.25) / 0.15), z, axis=1)
    return np.select([x <= 0.6, x <= 0.75, x <= 0.9], [smooth, -1.0, 1.0], 0.0)
