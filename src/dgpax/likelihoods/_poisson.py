"""Counts."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import gammaln

from ..typing import Array, Float
from ._exposure import as_exposure
from ._log_link import AbstractLogLink
from ._support import COUNTS


class Poisson(AbstractLogLink):
    """Counts with rate exposure · exp(f). `exposure` is a constant, one for all outputs or one per output [P].

    >>> import jax.numpy as jnp
    >>> from dgpax.likelihoods import Poisson
    >>> Poisson().conditional_mean(jnp.log(jnp.asarray([[3.0]]))).round(6)
    Array([[3.]], dtype=float64)
    """

    exposure: Float[Array, "..."] = eqx.field(converter=as_exposure, default=1.0)
    quadrature_order: int = eqx.field(static=True, default=20)
    support = COUNTS

    @property
    def base_mean(self):
        return self.exposure

    @property
    def variance_coefficients(self):
        return 1.0, 0.0

    def log_density(self, f, y):
        return y * (f + jnp.log(self.exposure)) - self.exposure * jnp.exp(f) - gammaln(y + 1.0)

    def expected_log_density(self, mean, variance, y):
        """The log density with exp(f) replaced by E[exp(f)] = exp(mean + variance/2)."""
        rate = self.exposure * jnp.exp(mean + 0.5 * variance)
        return y * (mean + jnp.log(self.exposure)) - rate - gammaln(y + 1.0)

    def sample(self, key, f):
        return jr.poisson(key, self.conditional_mean(f)).astype(f.dtype)
