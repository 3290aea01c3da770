"""Densities of the likelihoods by SciPy, and their integrals under a Gaussian by brute force. No dgpax in here."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import integrate, stats


def gaussian(f, y, noise_variance):
    return stats.norm.logpdf(y, f, np.sqrt(noise_variance))


def correlated_gaussian(f, y, covariance):
    """Of one row; NaN in y is marginalised by taking the sub-blocks."""
    seen = ~np.isnan(y)
    return stats.multivariate_normal.logpdf(y[seen], f[seen], covariance[np.ix_(seen, seen)]) if seen.any() else 0.0


def heteroskedastic(f, g, y):
    return stats.norm.logpdf(y, f, np.exp(0.5 * g))


def student_t(f, y, scale, degrees_of_freedom):
    return stats.t.logpdf(y, degrees_of_freedom, loc=f, scale=scale)


def bernoulli_probit(f, y):
    return stats.norm.logcdf(np.where(y == 1, f, -f))


def bernoulli_logit(f, y):
    return stats.logistic.logcdf(np.where(y == 1, f, -f))


def ordinal(f, y, edges, scale):
    padded = np.concatenate([[-np.inf], edges, [np.inf]])
    upper = (padded[y.astype(int) + 1] - f) / scale
    lower = (padded[y.astype(int)] - f) / scale
    right = stats.norm.sf(lower) - stats.norm.sf(upper)
    return np.log(np.where(lower > 0, right, stats.norm.cdf(upper) - stats.norm.cdf(lower)))


def robust_max(f, y, epsilon):
    right = np.argmax(f, axis=-1) == y
    return np.where(right, np.log(1 - epsilon), np.log(epsilon / (f.shape[-1] - 1)))


def softmax(f, y):
    weights = np.exp(f - np.max(f, axis=-1, keepdims=True))
    probabilities = weights / np.sum(weights, axis=-1, keepdims=True)
    return np.log(np.take_along_axis(probabilities, y.astype(int)[..., None], axis=-1)[..., 0])


def poisson(f, y, exposure):
    return stats.poisson.logpmf(y, exposure * np.exp(f))


def negative_binomial(f, y, dispersion, exposure):
    mean = exposure * np.exp(f)
    return stats.nbinom.logpmf(y, 1 / dispersion, 1 / (1 + dispersion * mean))


def gamma(f, y, shape):
    return stats.gamma.logpdf(y, shape, scale=np.exp(f) / shape)


def beta(f, y, precision):
    mean = stats.logistic.cdf(f)
    return stats.beta.logpdf(y, precision * mean, precision * (1 - mean))


def expectation(function, mean, variance, peak=None):
    """∫ function(f) N(f; mean, variance) df by adaptive quadrature; `peak` names a narrow spot (centre, width)."""
    stddev = np.sqrt(variance)
    breaks = [mean + k * stddev for k in (-12, -6, -2, 0, 2, 6, 12)]
    if peak is not None:
        breaks += [peak[0] + k * peak[1] for k in (-40, -10, -3, 0, 3, 10, 40)]
    breaks = sorted(b for b in breaks if abs(b - mean) <= 12 * stddev)
    pieces = [
        integrate.quad(
            lambda f: function(f) * stats.norm.pdf(f, mean, stddev), a, b, epsabs=1e-16, epsrel=1e-11, limit=200
        )
        for a, b in pairwise(breaks)
    ]
    return sum(value for value, _ in pieces)


def probability_largest(mean, stddev):
    """P(f_c is the largest) for independent normals, by a fine trapezium rule."""
    x = np.linspace(np.min(mean - 10 * stddev), np.max(mean + 10 * stddev), 200_001)[:, None]
    cdf, pdf = stats.norm.cdf(x, mean, stddev), stats.norm.pdf(x, mean, stddev)
    others = np.stack([np.prod(np.delete(cdf, c, axis=1), axis=1) for c in range(len(mean))], axis=1)
    return np.trapezoid(pdf * others, x, axis=0)


def softmax_expectations(mean, variance, order=50):
    """E[log Σ exp f] and E[softmax f] for three classes, by the full product Gauss-Hermite rule."""
    z, w = np.polynomial.hermite_e.hermegauss(order)
    w = w / np.sum(w)
    grid = np.stack(np.meshgrid(z, z, z, indexing="ij"), axis=-1)
    weight = w[:, None, None] * w[:, None] * w
    f = mean + np.sqrt(variance) * grid
    top = np.max(f, axis=-1, keepdims=True)
    total = np.sum(np.exp(f - top), axis=-1)
    log_sum = top[..., 0] + np.log(total)
    return np.sum(weight * log_sum), np.einsum("ijk,ijkc->c", weight, np.exp(f - top) / total[..., None])
