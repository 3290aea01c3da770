"""Targets whose mean is proportional to exp(f)."""

from __future__ import annotations

import abc

import jax.numpy as jnp

from ..distributions import Gaussian
from ..typing import Array, Float
from ._integrals import derivative, log_expectation_peaked
from ._scalar import AbstractScalarLikelihood

FARTHEST = 1e3


class AbstractLogLink(AbstractScalarLikelihood):
    """E[y | f] = c exp(f) =: μ and Var[y | f] = a μ + b μ², with a log density that is concave in f.

    The predictive moments are then those of a log-normal. The predictive density is an adaptive quadrature: a count
    of a million pins f down to 0.001, far between the nodes of a fixed rule.
    """

    @property
    @abc.abstractmethod
    def quadrature_order(self) -> int:
        """The number of nodes: a field of the subclass."""

    @property
    @abc.abstractmethod
    def base_mean(self) -> float | Float[Array, "..."]:
        """c, the mean where f = 0."""

    @property
    @abc.abstractmethod
    def variance_coefficients(self) -> tuple[float | Float[Array, "..."], float | Float[Array, "..."]]:
        """a and b."""

    def predictive_log_density(self, mean, variance, y):
        """As the log density ℓ is concave, the mode of ℓ(f) + log N(f; m, v) lies between m and m + v ℓ′(m)."""
        mean, variance, y = jnp.broadcast_arrays(mean, variance, y)

        def log_function(f):
            return self.log_density(f, y)

        reach = jnp.clip(variance * derivative(log_function)(mean), -FARTHEST, FARTHEST)
        bracket = (mean + jnp.minimum(reach, 0.0), mean + jnp.maximum(reach, 0.0))
        return log_expectation_peaked(log_function, mean, variance, self.quadrature_order, bracket)

    def conditional_mean(self, f: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        return self.base_mean * jnp.exp(f)

    def conditional_variance(self, f: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        a, b = self.variance_coefficients
        mean = self.conditional_mean(f)
        return a * mean + b * mean**2

    def predictive_mean(self, q: Gaussian) -> Float[Array, "*batch N P"]:
        """E μ = c exp(m + v/2)."""
        return self.base_mean * jnp.exp(q.mean + 0.5 * q.variance)

    def predictive_variance(self, q: Gaussian) -> Float[Array, "*batch N P"]:
        """a E μ + b E[μ²] + Var μ, with E[μ²] = (E μ)² exp(v) and Var μ = (E μ)² (exp(v) − 1)."""
        a, b = self.variance_coefficients
        mean = self.predictive_mean(q)
        return a * mean + mean**2 * (b * jnp.exp(q.variance) + jnp.expm1(q.variance))
