"""Points as locations by dense matrices: one draw at a time, RBF kernels, every output by itself."""

from __future__ import annotations

import numpy as np

from .coupled import rbf


def prior(locations: np.ndarray, lengthscale: float, variance: float, nugget: float) -> np.ndarray:
    """Covariance of the values of a process at its locations, seen with a little noise."""
    return rbf(locations, locations, lengthscale, variance) + nugget * variance * np.eye(len(locations))


def log_normal(x: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
    """log N(x; mean, covariance)."""
    rest = x - mean
    return -0.5 * float(
        rest @ np.linalg.solve(covariance, rest) + np.linalg.slogdet(covariance)[1] + len(x) * np.log(2 * np.pi)
    )


def log_prior(layers, z: np.ndarray, values: list[np.ndarray], nugget: float) -> float:
    """Σ_l log p(u_l | u_{l−1}) for u_l [width, M]; a layer is (lengthscale, variance, slope), with the mean function
    slope · x of a layer that keeps its width."""
    total, locations = 0.0, z
    for (lengthscale, variance, slope), u in zip(layers, values, strict=True):
        K = prior(locations, lengthscale, variance, nugget)
        mean = slope * locations.T if slope else np.zeros_like(u)
        total += sum(log_normal(own, m, K) for own, m in zip(u, mean, strict=True))
        locations = u.T
    return total


def conditional(x, locations, u, layer, nugget: float):
    """Mean [N, width] and variance [N] of f(x) given its values u at the locations."""
    lengthscale, variance, slope = layer
    gain = np.linalg.solve(prior(locations, lengthscale, variance, nugget), rbf(locations, x, lengthscale, variance)).T
    rest = u.T - slope * locations if slope else u.T
    mean = gain @ rest + (slope * x if slope else 0.0)
    return mean, variance - np.sum(gain * rbf(x, locations, lengthscale, variance), axis=1)
