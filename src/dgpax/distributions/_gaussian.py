"""Independent Gaussians."""

from __future__ import annotations

import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import erf, ndtr, ndtri

from ..errors import InputError
from ..programs import compiled
from ..typing import Array, ArrayLike, Float, RandomKey
from ._base import AbstractDistribution, as_probability, safe_sqrt

LOG_2PI = 1.8378770664093453


class Gaussian(AbstractDistribution):
    """N(mean, variance) for every entry. A variance of 0 is a point mass: the cdf is a step, nothing is NaN.

    >>> import jax.numpy as jnp
    >>> from dgpax.distributions import Gaussian
    >>> p = Gaussian(jnp.zeros((1, 1)), jnp.full((1, 1), 4.0))
    >>> low, high = p.interval(0.9)
    >>> round(float(high[0, 0]), 3), round(float(p.cdf(2.0)[0, 0]), 3)
    (3.29, 0.841)
    """

    mean: Float[Array, "*batch N P"]
    variance: Float[Array, "*batch N P"]

    def __check_init__(self):
        if self.mean.shape != self.variance.shape:
            raise InputError(
                f"Gaussian needs mean and variance of the same shape [*batch, N, P]; got {self.mean.shape} and "
                f"{self.variance.shape}. Broadcast the variance first: jnp.broadcast_to(variance, mean.shape)."
            )

    def cdf(self, y: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        return ndtr(_standardise(jnp.subtract(y, self.mean), self.stddev))

    def log_prob(self, y: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        """−½ log 2π − log σ − z²/2; for a point mass ∞ at the mean and −∞ elsewhere."""
        stddev = self.stddev
        spread = stddev > 0
        z = _standardise(jnp.subtract(y, self.mean), stddev)
        density = -0.5 * (LOG_2PI + z * z) - jnp.log(jnp.where(spread, stddev, 1.0))
        return jnp.where(spread | (y != self.mean), density, jnp.inf)

    def quantile(self, p: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        return _quantile(self, as_probability(p, self.mean.dtype))

    def expected_distance(self, y: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        return absolute_moment(jnp.subtract(y, self.mean), self.variance)

    def expected_difference(self, other: Gaussian) -> Float[Array, "..."]:
        return absolute_moment(self.mean - other.mean, self.variance + other.variance)

    def sample(self, key: RandomKey, num_samples: int) -> Float[Array, "num_samples *batch N P"]:
        noise = jr.normal(key, (num_samples, *self.mean.shape), self.mean.dtype)
        return self.mean + self.stddev * noise

    def affine(self, shift: Float[ArrayLike, "..."], scale: Float[ArrayLike, "..."]) -> Gaussian:
        shift, scale = jnp.asarray(shift, self.mean.dtype), jnp.asarray(scale, self.mean.dtype)
        return Gaussian(shift + scale * self.mean, scale**2 * self.variance)


@compiled
def _quantile(gaussian: Gaussian, p: Float[Array, "..."]) -> Float[Array, "..."]:
    stddev = gaussian.stddev
    return gaussian.mean + jnp.where(stddev > 0, stddev * ndtri(p), 0.0)


def absolute_moment(mean: Float[Array, "..."], variance: Float[Array, "..."]) -> Float[Array, "..."]:
    """A(μ, σ²) = E|X| = 2σ φ(μ/σ) + μ (2Φ(μ/σ) − 1) for X ~ N(μ, σ²)   [Grimit et al. 2006, eq. (5)].

    With 2Φ(z) − 1 = erf(z/√2) the form stays exact when σ goes to 0 and μ/σ overflows.
    """
    stddev = safe_sqrt(variance)
    z = _standardise(mean, stddev)
    density = jnp.exp(-0.5 * (LOG_2PI + z * z))
    return 2.0 * stddev * density + mean * erf(z * 0.5**0.5)


def _standardise(deviation: Float[Array, "..."], stddev: Float[Array, "..."]) -> Float[Array, "..."]:
    """deviation/σ; for σ = 0 it is ∞ from the mean upwards and −∞ below, which makes Φ the step of a point mass."""
    step = jnp.where(deviation >= 0, jnp.inf, jnp.where(deviation < 0, -jnp.inf, jnp.nan))
    spread = stddev > 0
    return jnp.where(spread, deviation / jnp.where(spread, stddev, 1.0), step)
