"""Targets between 0 and 1."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import gammaln

from ..distributions import Gaussian
from ..linalg import gaussian_expectation
from ..parameters import AbstractParameter, as_positive
from ..typing import Array, Float
from ._integrals import log_expectation_peaked, positive
from ._scalar import AbstractQuadratureLikelihood
from ._support import UNIT_INTERVAL


class Beta(AbstractQuadratureLikelihood):
    """Beta with mean μ = 1/(1 + exp(−f)) and `precision` φ, scalar or [P]: the variance is μ(1 − μ)/(1 + φ)
    [Ferrari & Cribari-Neto 2004, section 2]."""

    precision: AbstractParameter = eqx.field(converter=as_positive, default=10.0)
    quadrature_order: int = eqx.field(static=True, default=20)
    support = UNIT_INTERVAL

    def log_density(self, f, y):
        """(a − 1) log y + (b − 1) log(1 − y) − log B(a, b) with a = μφ, b = (1 − μ)φ.

        −log Γ(a) is written log a − log Γ(a + 1), with log a from the log sigmoid, finite also where a underflows.
        """
        precision = self.precision.value
        log_a = jnp.log(precision) + jax.nn.log_sigmoid(f)
        log_b = jnp.log(precision) + jax.nn.log_sigmoid(-f)
        a, b = jnp.exp(log_a), jnp.exp(log_b)
        log_inverse_beta = gammaln(precision) + log_a - gammaln(a + 1.0) + log_b - gammaln(b + 1.0)
        return (a - 1.0) * jnp.log(y) + (b - 1.0) * jnp.log1p(-y) + log_inverse_beta

    def predictive_log_density(self, mean, variance, y):
        """As |ψ(a) − ψ(b)| > |log a/b|, the log density peaks between f = 0 and the logit of y, so the mode of the
        integrand lies between the smallest and the largest of these two and the mean."""
        mean, variance, y = jnp.broadcast_arrays(mean, variance, y)
        logit = jnp.log(y) - jnp.log1p(-y)
        bracket = (jnp.minimum(mean, jnp.minimum(logit, 0.0)), jnp.maximum(mean, jnp.maximum(logit, 0.0)))
        return log_expectation_peaked(lambda f: self.log_density(f, y), mean, variance, self.quadrature_order, bracket)

    def conditional_mean(self, f: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        return jax.nn.sigmoid(f)

    def conditional_variance(self, f: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        return jax.nn.sigmoid(f) * jax.nn.sigmoid(-f) / (1.0 + self.precision.value)

    def predictive_mean(self, q: Gaussian) -> Float[Array, "*batch N P"]:
        return self._expectation(self.conditional_mean, q)

    def predictive_variance(self, q: Gaussian) -> Float[Array, "*batch N P"]:
        mean = self.predictive_mean(q)
        return self._expectation(lambda f: self.conditional_variance(f) + (self.conditional_mean(f) - mean) ** 2, q)

    def sample(self, key, f):
        precision = self.precision.value
        return jr.beta(key, precision * jax.nn.sigmoid(f), precision * jax.nn.sigmoid(-f), dtype=f.dtype)

    def _expectation(self, function, q: Gaussian) -> Float[Array, "*batch N P"]:
        return gaussian_expectation(function, q.mean, positive(q.variance), self.quadrature_order)
