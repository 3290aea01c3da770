"""Expectations under Gaussian inputs by Gauss-Hermite quadrature; imports nothing of dgpax.

Kernels are functions of z [M, D] and x [J, D] that return [M, J].
"""

from __future__ import annotations

from functools import reduce

import numpy as np


def rbf(lengthscale, variance):
    def kernel(z, x):
        return variance * np.exp(-0.5 * np.sum(((z[:, None] - x[None]) / lengthscale) ** 2, axis=-1))

    return kernel


def linear(variance):
    return lambda z, x: np.sum(variance * z[:, None] * x[None], axis=-1)


def constant(variance):
    return lambda z, x: np.full((len(z), len(x)), variance)


def on(kernel, *columns):
    return lambda z, x: kernel(z[:, list(columns)], x[:, list(columns)])


def grid(mean, variance, num=48):
    """Nodes [J, D] and weights [J] for N(mean, diag variance)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(num)
    axes = np.meshgrid(*(m + np.sqrt(v) * nodes for m, v in zip(mean, variance, strict=True)), indexing="ij")
    products = reduce(np.multiply.outer, [weights / np.sum(weights)] * len(mean))
    return np.stack([axis.ravel() for axis in axes], axis=-1), products.ravel()


def psi(kernel, z, mean, variance):
    """ψ0 [N], ψ1 [M, N] and ψ2 [N, M, M]."""
    rows = []
    for m, v in zip(mean, variance, strict=True):
        x, w = grid(m, v)
        K = kernel(z, x)
        diagonal = np.array([kernel(row[None], row[None])[0, 0] for row in x])
        rows.append((diagonal @ w, K @ w, (K * w) @ K.T))
    zero, one, two = zip(*rows, strict=True)
    return np.array(zero), np.stack(one, axis=-1), np.stack(two)
