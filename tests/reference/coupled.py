"""Deep GPs with a joint Gaussian over all inducing outputs, by brute force: dense matrices, one row at a time."""

from __future__ import annotations

import numpy as np


def rbf(x: np.ndarray, z: np.ndarray, lengthscale: float, variance: float) -> np.ndarray:
    distance = np.sum((x[:, None] - z[None]) ** 2, axis=-1)
    return variance * np.exp(-0.5 * distance / lengthscale**2)


def dense_root(pairs, blocks: np.ndarray, size: int) -> np.ndarray:
    """The block matrix as a matrix."""
    M = blocks.shape[-1]
    root = np.zeros((size * M, size * M))
    for block, (i, j) in zip(blocks, pairs, strict=True):
        root[i * M : (i + 1) * M, j * M : (j + 1) * M] = block
    return root


def dense_kl(mean: np.ndarray, covariance: np.ndarray, prior: np.ndarray) -> float:
    """KL(N(m, S) || N(0, K))."""
    inverse = np.linalg.inv(prior)
    trace = np.trace(inverse @ covariance) + mean @ inverse @ mean - len(mean)
    return 0.5 * float(trace + np.linalg.slogdet(prior)[1] - np.linalg.slogdet(covariance)[1])


def condition(mean, covariance, known: np.ndarray):
    """The mean and covariance of the last entries of a Gaussian, given its first ones."""
    k = len(known)
    gain = np.linalg.solve(covariance[:k, :k], covariance[:k, k:]).T
    return mean[k:] + gain @ (known - mean[:k]), covariance[k:, k:] - gain @ covariance[:k, k:]


def layer_rows(whitened_mean, whitened_covariance, layers, inputs):
    """Mean and covariance of f_1 … f_l of one row, jointly, for given inputs of the layers.

    A layer is (z, lengthscale, variance, width); `whitened_*` are of the inducing outputs of all layers in a row.
    f = A v + rest, with A_l = k(x, Z) K⁻¹ L, a row per process.
    """
    total = len(whitened_mean)
    rows, rest, start = [], [], 0
    for (z, lengthscale, variance, width), x in zip(layers, inputs, strict=False):
        M = len(z)
        L = np.linalg.cholesky(rbf(z, z, lengthscale, variance))
        a = np.linalg.solve(L, rbf(z, x[None], lengthscale, variance))[:, 0]
        for _ in range(width):
            row = np.zeros(total)
            row[start : start + M] = a
            rows.append(row)
            rest.append(variance - a @ a)
            start += M
    A = np.stack(rows)
    return A @ whitened_mean, A @ whitened_covariance @ A.T + np.diag(rest)
