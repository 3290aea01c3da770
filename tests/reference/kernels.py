"""Covariance functions of two points, straight from their formulas; imports nothing of dgpax."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

PointKernel = Callable[[np.ndarray, np.ndarray], float]


def matrix(kernel: PointKernel, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """k(x_n, y_m) for all pairs of rows, one by one."""
    return np.array([[kernel(a, b) for b in y] for a in x])


def distance(x, y, lengthscale) -> float:
    return float(np.sqrt(np.sum(((x - y) / lengthscale) ** 2)))


def rbf(x, y, lengthscale, variance) -> float:
    return variance * np.exp(-0.5 * distance(x, y, lengthscale) ** 2)


def matern12(x, y, lengthscale, variance) -> float:
    return variance * np.exp(-distance(x, y, lengthscale))


def matern32(x, y, lengthscale, variance) -> float:
    s = np.sqrt(3.0) * distance(x, y, lengthscale)
    return variance * (1.0 + s) * np.exp(-s)


def matern52(x, y, lengthscale, variance) -> float:
    s = np.sqrt(5.0) * distance(x, y, lengthscale)
    return variance * (1.0 + s + s**2 / 3.0) * np.exp(-s)


def rational_quadratic(x, y, lengthscale, variance, alpha) -> float:
    return variance * (1.0 + distance(x, y, lengthscale) ** 2 / (2.0 * alpha)) ** (-alpha)


def periodic(x, y, period, lengthscale, variance) -> float:
    return variance * np.exp(-2.0 * np.sum((np.sin(np.pi * (x - y) / period) / lengthscale) ** 2))


def cosine(x, y, lengthscale, variance) -> float:
    return variance * np.cos(2.0 * np.pi * np.sum((x - y) / lengthscale))


def linear(x, y, variance) -> float:
    return float(np.sum(variance * x * y))


def polynomial(x, y, degree, variance, offset) -> float:
    return (linear(x, y, variance) + offset) ** degree


def arc_cosine(x, y, order, weight_variance, bias_variance, variance) -> float:
    """Cho & Saul (2009), eqs. 1 and 4-6, with θ from the half angle so that it is exact at θ = 0."""
    u = np.append(np.sqrt(weight_variance) * x, np.sqrt(bias_variance))
    v = np.append(np.sqrt(weight_variance) * y, np.sqrt(bias_variance))
    length_u, length_v = np.linalg.norm(u), np.linalg.norm(v)
    theta = 2.0 * np.arctan2(np.linalg.norm(u / length_u - v / length_v), np.linalg.norm(u / length_u + v / length_v))
    J = (
        np.pi - theta,
        np.sin(theta) + (np.pi - theta) * np.cos(theta),
        3.0 * np.sin(theta) * np.cos(theta) + (np.pi - theta) * (1.0 + 2.0 * np.cos(theta) ** 2),
    )[order]
    return variance / np.pi * (length_u * length_v) ** order * J


def constant(x, y, variance) -> float:
    return variance


def paciorek(x, y, correlation, lengthscale_function, variance) -> float:
    """Paciorek & Schervish (2004), eq. 8, with diagonal matrices Σ; `correlation` is a function of the distance."""
    a, b = lengthscale_function(x) ** 2, lengthscale_function(y) ** 2
    middle = (a + b) / 2.0
    determinants = np.prod(a) ** 0.25 * np.prod(b) ** 0.25 * np.prod(middle) ** -0.5
    return variance * determinants * correlation(np.sqrt(np.sum((x - y) ** 2 / middle)))


def change_points(x, y, kernels, locations, steepness, column) -> float:
    """Lloyd et al. (2014), appendix A.2: every kernel acts between two change points, blended by sigmoids."""

    def sigmoid(z):
        return 1.0 / (1.0 + np.exp(-steepness * (z - np.asarray(locations))))

    def weight(point, i):
        gates = sigmoid(point[column])
        begun = 1.0 if i == 0 else gates[i - 1]
        ended = 0.0 if i == len(kernels) - 1 else gates[i]
        return begun * (1.0 - ended)

    return sum(weight(x, i) * kernel(x, y) * weight(y, i) for i, kernel in enumerate(kernels))
