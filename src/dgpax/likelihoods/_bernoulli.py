"""Two classes."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from ._integrals import log_expectation
from ._labels import AbstractScalarClassification
from ._normal import log_ndtr
from ._scalar import AbstractQuadratureLikelihood


class AbstractBernoulli(AbstractQuadratureLikelihood, AbstractScalarClassification):
    """Labels 0 and 1."""

    @property
    def num_classes(self) -> int:
        return 2


class BernoulliProbit(AbstractBernoulli):
    """P(y = 1 | f) = Φ(f), the normal cumulative distribution.

    >>> import jax.numpy as jnp
    >>> from dgpax.distributions import Gaussian
    >>> from dgpax.likelihoods import BernoulliProbit
    >>> BernoulliProbit().class_probabilities(Gaussian(jnp.zeros((1, 1)), jnp.ones((1, 1)))).round(6)
    Array([[0.5, 0.5]], dtype=float64)
    """

    quadrature_order: int = eqx.field(static=True, default=20)

    def log_density(self, f, y):
        return log_ndtr(_sign(y) * f)

    def predictive_log_density(self, mean, variance, y):
        """log Φ(± mean/√(1 + variance))   [Rasmussen & Williams 2006, section 3.9]."""
        return log_ndtr(_sign(y) * mean / jnp.sqrt(1.0 + variance))


class BernoulliLogit(AbstractBernoulli):
    """P(y = 1 | f) = 1/(1 + exp(−f))."""

    quadrature_order: int = eqx.field(static=True, default=20)

    def log_density(self, f, y):
        return jax.nn.log_sigmoid(_sign(y) * f)

    def predictive_log_density(self, mean, variance, y):
        return log_expectation(lambda f: self.log_density(f, y), mean, variance, self.quadrature_order)


def _sign(y):
    """0, 1 to −1, 1."""
    return 2.0 * y - 1.0
