"""Convolutional covariances by plain loops."""

from __future__ import annotations

import numpy as np


def patches(image, image_shape, patch_shape, stride=1, positions=False):
    """All patches of one flat image, row by row, [patches, numbers]."""
    H, W, C = (*image_shape, 1)[:3]
    pixels = np.asarray(image).reshape(H, W, C)
    h, w = patch_shape
    found = []
    for i in range(0, H - h + 1, stride):
        for j in range(0, W - w + 1, stride):
            numbers = [pixels[i + a, j + b, c] for a in range(h) for b in range(w) for c in range(C)]
            found.append(numbers + ([i, j] if positions else []))
    return np.array(found)


def rbf(a, b, lengthscale, variance):
    return variance * np.exp(-0.5 * np.sum((a - b) ** 2) / lengthscale**2)


def cross(x, y, cut, k, weights=None):
    """1/P² Σ_p Σ_q w_p w_q k(x[p], y[q])."""
    K = np.zeros((len(x), len(y)))
    for n, image in enumerate(x):
        for m, other in enumerate(y):
            left, right = cut(image), cut(other)
            w = np.ones(len(left)) if weights is None else weights
            for p, a in enumerate(left):
                for q, b in enumerate(right):
                    K[n, m] += w[p] * w[q] * k(a, b) / len(left) ** 2
    return K


def inducing_cross(z, x, cut, k, weights=None):
    """1/P Σ_p w_p k(z, x[p])."""
    K = np.zeros((len(z), len(x)))
    for m, patch in enumerate(z):
        for n, image in enumerate(x):
            own = cut(image)
            w = np.ones(len(own)) if weights is None else weights
            K[m, n] = sum(w[p] * k(patch, a) for p, a in enumerate(own)) / len(own)
    return K


def conditional(Kuu, Kuf, Kff, mean, root):
    """Mean and covariance of f under q(v) = N(mean, root rootᵀ), u = Lv."""
    A = np.linalg.solve(np.linalg.cholesky(Kuu), Kuf).T
    return A @ mean, Kff - A @ A.T + A @ root @ root.T @ A.T
