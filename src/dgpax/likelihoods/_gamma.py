"""Positive targets with a constant coefficient of variation."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import gammaln

from ..parameters import AbstractParameter, as_positive
from ._log_link import AbstractLogLink
from ._support import POSITIVE


class Gamma(AbstractLogLink):
    """Gamma with mean exp(f) and the given `shape`: y/exp(f) has mean 1 and variance 1/shape. Shape scalar or [P]."""

    shape: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    quadrature_order: int = eqx.field(static=True, default=20)
    support = POSITIVE

    @property
    def base_mean(self):
        return 1.0

    @property
    def variance_coefficients(self):
        return 0.0, 1.0 / self.shape.value

    def log_density(self, f, y):
        return self._log_density(f, jnp.exp(-f), y)

    def expected_log_density(self, mean, variance, y):
        """The log density with exp(−f) replaced by E[exp(−f)] = exp(−mean + variance/2)."""
        return self._log_density(mean, jnp.exp(-mean + 0.5 * variance), y)

    def sample(self, key, f):
        shape = jnp.broadcast_to(self.shape.value, f.shape)
        return jnp.exp(f) * jr.gamma(key, shape, dtype=f.dtype) / shape

    def _log_density(self, f, inverse_mean, y):
        k = self.shape.value
        return k * (jnp.log(k) - f - y * inverse_mean) + (k - 1.0) * jnp.log(y) - gammaln(k)
