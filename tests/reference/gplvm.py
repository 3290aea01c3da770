"""The collapsed bound of the Bayesian GP-LVM, from its formulas; imports nothing of dgpax."""

from __future__ import annotations

import numpy as np


def psi_statistics(mean, variance, z, lengthscale, kernel_variance):
    """ψ0, ψ1 [N, M] and ψ2 [M, M] of an ARD RBF [Titsias & Lawrence 2010, supplement]."""
    squares = lengthscale**2
    near = (mean[:, None] - z[None]) ** 2 / (variance[:, None] + squares)
    one = kernel_variance * np.prod(
        np.exp(-0.5 * near) / np.sqrt(variance[:, None] / squares + 1.0),
        axis=-1,
    )
    middle = 0.5 * (z[:, None] + z[None])
    apart = (z[:, None] - z[None]) ** 2 / (4.0 * squares)
    row = (mean[:, None, None] - middle) ** 2 / (2.0 * variance[:, None, None] + squares)
    factors = np.exp(-apart - row) / np.sqrt(2.0 * variance[:, None, None] / squares + 1.0)
    two = kernel_variance**2 * np.sum(np.prod(factors, axis=-1), axis=0)
    return len(mean) * kernel_variance, one, two


def optimal_inducing_outputs(y, gram, one, two, noise):
    """The mean [M, P] and the covariance [M, M] of the best q(u) [Titsias & Lawrence 2010, section 3.1]."""
    inverse = np.linalg.inv(gram + two / noise)
    return gram @ inverse @ one.T @ y / noise, gram @ inverse @ gram


def collapsed_bound(y, gram, zero, one, two, noise):
    """The bound without KL(q(x) || p(x)), u integrated out [Titsias & Lawrence 2010, eq. 14 summed over outputs]."""
    num_rows, num_outputs = y.shape
    total = gram + two / noise
    projected = one.T @ y
    log_determinants = np.linalg.slogdet(gram)[1] - np.linalg.slogdet(total)[1]
    value = 0.5 * num_outputs * (log_determinants - num_rows * np.log(2 * np.pi * noise))
    value += 0.5 * (np.sum(projected * np.linalg.solve(total, projected)) / noise - np.sum(y**2)) / noise
    return value + 0.5 * num_outputs * (np.trace(np.linalg.solve(gram, two)) - zero) / noise


def gaussian_kl(mean, covariance):
    """KL(N(m, S) || N(0, I)) of one row, with dense matrices."""
    return 0.5 * (np.trace(covariance) + mean @ mean - len(mean) - np.linalg.slogdet(covariance)[1])
