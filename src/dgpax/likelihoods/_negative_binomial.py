"""Counts that vary more than Poisson counts."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import gammaln

from ..parameters import AbstractParameter, as_positive
from ..typing import Array, Float
from ._exposure import as_exposure
from ._log_link import AbstractLogLink
from ._scalar import AbstractQuadratureLikelihood
from ._support import COUNTS


class NegativeBinomial(AbstractQuadratureLikelihood, AbstractLogLink):
    """Counts with mean μ = exposure · exp(f) and variance μ + dispersion · μ²; dispersion → 0 is Poisson.

    `dispersion` and `exposure` are one for all outputs or one per output [P]; `exposure` is a constant.
    """

    dispersion: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    exposure: Float[Array, "..."] = eqx.field(converter=as_exposure, default=1.0)
    quadrature_order: int = eqx.field(static=True, default=20)
    support = COUNTS

    @property
    def base_mean(self):
        return self.exposure

    @property
    def variance_coefficients(self):
        return 1.0, self.dispersion.value

    def log_density(self, f, y):
        """log [Γ(y + r)/(Γ(r) y!) (1 − p)^r p^y], r = 1/dispersion, p = μ/(μ + r), a sigmoid of f
        [Hilbe 2011, "Negative binomial regression", the form NB2]."""
        dispersion = self.dispersion.value
        r = 1.0 / dispersion
        logit = f + jnp.log(self.exposure * dispersion)
        log_choose = gammaln(y + r) - gammaln(r) - gammaln(y + 1.0)
        return log_choose + y * jax.nn.log_sigmoid(logit) + r * jax.nn.log_sigmoid(-logit)

    def sample(self, key, f):
        """A Poisson count whose rate is μ times a Gamma variable of mean 1 and variance `dispersion`."""
        key_rate, key_count = jr.split(key)
        r = jnp.broadcast_to(1.0 / self.dispersion.value, f.shape)
        rate = self.conditional_mean(f) * jr.gamma(key_rate, r, dtype=f.dtype) / r
        return jr.poisson(key_count, rate).astype(f.dtype)
