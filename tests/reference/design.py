"""Criteria of sequential design for a Gaussian belief, from the formulas; imports nothing of dgpax."""

from __future__ import annotations

import numpy as np


def variance_lowered(covariance_zx: np.ndarray, variance_x: np.ndarray, noise_variance: float) -> np.ndarray:
    """By how much observing y(x) lowers the variance at z, on average over z [Cohn 1994]: [Z, N] and [N] to [N]."""
    return np.mean(covariance_zx**2, axis=0) / (variance_x + noise_variance)


def vigf(mean: np.ndarray, variance: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """Var (f − y*)² of f ~ N(mean, variance) [Mohammadi & Challenor 2022]."""
    return 4.0 * variance * (mean - nearest) ** 2 + 2.0 * variance**2


def improvements(draws: np.ndarray, best: float) -> np.ndarray:
    """max(best − min over the batch, 0) of every draw [S, Q]."""
    return np.maximum(best - draws.min(axis=1), 0.0)


def binary_entropy(p: np.ndarray) -> np.ndarray:
    """−p log p − (1 − p) log(1 − p)."""
    return -p * np.log(p) - (1.0 - p) * np.log1p(-p)
