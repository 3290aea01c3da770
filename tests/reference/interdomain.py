"""Linear functionals and Matérn Hilbert spaces by brute force; imports nothing of dgpax.

A functional is a list of nodes and weights, L f ≈ Σ w_i f(x_i), so that every covariance is w K w'.
"""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
from numpy.polynomial import Polynomial

STENCIL = np.array([-1 / 60, 3 / 20, -3 / 4, 3 / 4, -3 / 20, 1 / 60])
OFFSETS = np.array([-3, -2, -1, 1, 2, 3])
STEP = 1e-2
SHAPES = {1: Polynomial([1.0]), 2: Polynomial([1.0, 1.0]), 3: Polynomial([1.0, 1.0, 1 / 3])}
DENSITIES = {1: 2.0, 2: 4.0, 3: 16 / 3}


def value(x):
    return np.array([x]), np.ones(1)


def derivative(x, column):
    """Sixth-order central differences."""
    step = STEP * np.eye(len(x))[column]
    return np.array([x + offset * step for offset in OFFSETS]), STENCIL / STEP


def box(low, high, num=12):
    """The integral by Gauss-Legendre nodes."""
    nodes, weights = np.polynomial.legendre.leggauss(num)
    axes = [(0.5 * (h - l) * nodes + 0.5 * (h + l), 0.5 * (h - l) * weights) for l, h in zip(low, high, strict=True)]
    return _grid(axes)


def gaussian(centre, width, num=24):
    """∫ f(x) N(x; centre, width²) dx by Gauss-Hermite nodes."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(num)
    return _grid([(c + w * nodes, weights / weights.sum()) for c, w in zip(centre, width, strict=True)])


def _grid(axes):
    points = np.stack(np.meshgrid(*(nodes for nodes, _ in axes), indexing="ij"), axis=-1).reshape(-1, len(axes))
    return points, reduce(np.multiply.outer, (weights for _, weights in axes)).ravel()


def rbf_matrix(x, y, lengthscale, variance):
    r2 = np.sum(((x[:, None] - y[None]) / lengthscale) ** 2, axis=-1)
    return variance * np.exp(-0.5 * r2)


def covariances(kernel_matrix, left, right):
    """Cov(L_n f, L'_m f) for two lists of functionals."""
    return np.array([[w @ kernel_matrix(x, y) @ v for y, v in right] for x, w in left])


class Matern:
    """The Hilbert space of a Matérn process of order p = ν + ½ on an interval.

    A function is a callable of (points, number of derivatives) that has p derivatives but for kinks.
    """

    def __init__(self, order, lengthscale, variance, low, high):
        self.p, self.variance, self.low, self.high = order, variance, low, high
        self.rate = math.sqrt(2 * order - 1) / lengthscale
        self.density = DENSITIES[order] * variance * self.rate ** (2 * order - 1)

    def section(self, x):
        """k(x, ·)."""

        def function(points, num):
            polynomial = SHAPES[self.p](Polynomial([0.0, self.rate]))
            for _ in range(num):
                polynomial = polynomial.deriv() - self.rate * polynomial
            t, side = np.abs(points - x), np.where(points < x, -1.0, 1.0)
            return self.variance * side**num * polynomial(t) * np.exp(-self.rate * t)

        return function

    def wave(self, frequency, kind):
        """cos or sin of frequency · (x − low)."""
        shift = 0.0 if kind == "cos" else -0.5 * math.pi

        def function(points, num):
            return frequency**num * np.cos(frequency * (points - self.low) + shift + 0.5 * math.pi * num)

        return function

    def inner(self, g, h, kinks=()):
        """1/q ∫ (D + λ)ᵖg (D + λ)ᵖh + s_g(low)ᵀ P⁻¹ s_h(low), P_ij = (−1)ʲ k⁽ⁱ⁺ʲ⁾(0)."""
        edges = np.unique(np.concatenate([np.linspace(self.low, self.high, 21), kinks]))
        nodes, weights = np.polynomial.legendre.leggauss(12)
        half = 0.5 * np.diff(edges)[:, None]
        points = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * nodes).ravel()
        integral = np.sum((half * weights).ravel() * self._filter(g, points) * self._filter(h, points))
        return integral / self.density + self._state(g) @ np.linalg.solve(self._stationary(), self._state(h))

    def _filter(self, g, points):
        p = self.p
        return sum(math.comb(p, j) * self.rate ** (p - j) * g(points, j) for j in range(p + 1))

    def _state(self, g):
        return np.array([float(g(np.array(self.low), j)) for j in range(self.p)])

    def _stationary(self):
        at_zero = [float(self.section(0.0)(np.array(0.0), j)) for j in range(2 * self.p - 1)]
        even = [0.0 if j % 2 else entry for j, entry in enumerate(at_zero)]
        return np.array([[(-1) ** j * even[i + j] for j in range(self.p)] for i in range(self.p)])
