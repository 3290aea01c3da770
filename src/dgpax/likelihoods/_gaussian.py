"""Independent Gaussian noise."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from ..distributions import Gaussian
from ..parameters import AbstractParameter, as_positive
from ..typing import Array, Float
from ._integrals import LOG_2PI
from ._multivariate import log_normal_together
from ._scalar import AbstractScalarLikelihood


class GaussianNoise(AbstractScalarLikelihood):
    """y = f + N(0, noise_variance), one noise variance for all outputs or one per output [P].

    >>> from dgpax.likelihoods import GaussianNoise
    >>> round(float(GaussianNoise(0.1).noise_variance.value), 6)
    0.1
    """

    noise_variance: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    in_any_units = True

    def log_density(self, f, y):
        return log_normal(y - f, self.noise_variance.value)

    def expected_log_density(self, mean, variance, y):
        """log N(y; mean, σ²) − variance/2σ²   [Titsias 2009; Hensman et al. 2013]."""
        noise_variance = self.noise_variance.value
        return log_normal(y - mean, noise_variance) - 0.5 * variance / noise_variance

    def predictive_log_density(self, mean, variance, y):
        return log_normal(y - mean, variance + self.noise_variance.value)

    def log_density_together(self, q, y):
        """log N(y; mean, covariance + σ²I)."""
        noise = self.noise_variance.value[..., None] * jnp.eye(y.shape[-1], dtype=y.dtype)
        return log_normal_together(q.mean, q.covariance + noise, y)

    def conditional_mean(self, f):
        return f

    def conditional_variance(self, f):
        return jnp.broadcast_to(self.noise_variance.value, f.shape)

    def predictive_mean(self, q):
        return q.mean

    def predictive_variance(self, q):
        return q.variance + self.noise_variance.value

    def components(self, q):
        return Gaussian(q.mean, self.predictive_variance(q))

    def sample(self, key, f):
        return f + jnp.sqrt(self.noise_variance.value) * jr.normal(key, f.shape, f.dtype)


def log_normal(residual: Float[Array, "..."], variance: Float[Array, "..."]) -> Float[Array, "..."]:
    """log N(residual; 0, variance)."""
    return -0.5 * (LOG_2PI + jnp.log(variance) + residual**2 / variance)
