"""Mixtures, joint normals and scores in NumPy and SciPy, from their definitions; imports nothing of dgpax."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import integrate, stats


def mixture_cdf(y: float, means, stddevs, weights) -> float:
    return float(np.sum(weights * stats.norm.cdf(y, means, stddevs)))


def mixture_density(y: float, means, stddevs, weights) -> float:
    return float(np.sum(weights * stats.norm.pdf(y, means, stddevs)))


def mixture_moments(means, stddevs, weights) -> tuple[float, float]:
    """Mean and variance by integration of the density."""
    low, high = _support(means, stddevs)

    def moment(function) -> float:
        return _integral(lambda y: function(y) * mixture_density(y, means, stddevs, weights), low, high, means)

    mean = moment(lambda y: y)
    return mean, moment(lambda y: (y - mean) ** 2)


def mixture_crps(y: float, means, stddevs, weights) -> float:
    """∫ (F(z) − [z ≥ y])² dz, the definition of the continuous ranked probability score."""
    low, high = _support(np.append(means, y), np.append(stddevs, 0.0))
    left = _integral(lambda z: mixture_cdf(z, means, stddevs, weights) ** 2, low, y, means)
    right = _integral(lambda z: (1.0 - mixture_cdf(z, means, stddevs, weights)) ** 2, y, high, means)
    return left + right


def _support(means, stddevs) -> tuple[float, float]:
    return float(np.min(means - 40 * stddevs)), float(np.max(means + 40 * stddevs))


def _integral(function, low: float, high: float, breaks) -> float:
    points = [point for point in np.unique(breaks) if low < point < high]
    edges = [low, *points, high]
    return sum(integrate.quad(function, a, b, epsabs=1e-12, epsrel=1e-12, limit=400)[0] for a, b in pairwise(edges))


def normal_crps(y, mean, stddev):
    """The closed form for one normal: σ [z (2Φ(z) − 1) + 2φ(z) − 1/√π]."""
    z = (y - mean) / stddev
    return stddev * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))


def normal_log_density(y, mean, covariance) -> float:
    """Of one multivariate normal, through the determinant and a solve."""
    deviation = y - mean
    log_det = np.linalg.slogdet(2 * np.pi * covariance).logabsdet
    return float(-0.5 * (log_det + deviation @ np.linalg.solve(covariance, deviation)))


def standardised_mse(y, prediction) -> float:
    """Per output with its observed targets, then averaged."""
    ratios = []
    for target, guess in zip(y.T, prediction.T, strict=True):
        seen = ~np.isnan(target)
        ratios.append(np.mean((target[seen] - guess[seen]) ** 2) / np.var(target[seen]))
    return float(np.mean(ratios))


def stride_mnll(y, prediction, noise_variance: float) -> float:
    """Eq. (6) of Latz, Teckentrup & Urbainczyk, term by term."""
    p = y.size
    return 0.5 * np.log(2 * np.pi * noise_variance) + np.sum((y - prediction) ** 2 / noise_variance) / (2 * p)


def quantile_calibration(y, quantile_of, levels) -> np.ndarray:
    """Fraction of observed targets at or below the predicted quantile, one level at a time."""
    seen = ~np.isnan(y)
    return np.array([np.mean((y <= quantile_of(level))[seen]) for level in levels])


def pairwise_auc(labels, scores) -> float:
    """Over all pairs of a positive and a negative."""
    positive, negative = scores[labels == 1], scores[labels == 0]
    differences = positive[:, None] - negative[None, :]
    return float(np.mean((differences > 0) + 0.5 * (differences == 0)))
