"""Likelihoods with one latent function per output, which factorise over the outputs."""

from __future__ import annotations

import abc
from typing import ClassVar

from numpy.typing import ArrayLike

from ..distributions import Gaussian, GaussianOverOutputs
from ..linalg import gaussian_expectation
from ..typing import Array, Float
from ._base import AbstractLikelihood
from ._dependent import log_density_together
from ._integrals import positive
from ._missing import sum_observed
from ._support import REAL, Support, check_support


class AbstractScalarLikelihood(AbstractLikelihood):
    """p(y | f) = Π_p p(y_p | f_p). A subclass gives elementwise functions; sums and missing outputs are done here.

    `mean`, `variance`, `f` and `y` of the elementwise functions broadcast. The variance is positive and y is valid.
    """

    support: ClassVar[Support] = REAL
    """What values a target may take."""

    @abc.abstractmethod
    def log_density(self, f: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
        """log p(y | f)."""

    @abc.abstractmethod
    def expected_log_density(
        self, mean: Float[Array, "..."], variance: Float[Array, "..."], y: Float[Array, "..."]
    ) -> Float[Array, "..."]:
        """E[log p(y | f)], f ~ N(mean, variance)."""

    @abc.abstractmethod
    def predictive_log_density(
        self, mean: Float[Array, "..."], variance: Float[Array, "..."], y: Float[Array, "..."]
    ) -> Float[Array, "..."]:
        """log E[p(y | f)], f ~ N(mean, variance)."""

    def num_latents(self, num_outputs: int) -> int:
        return num_outputs

    def for_expectation(self, outputs) -> Gaussian:
        return outputs.marginal()

    def log_prob(self, f: Float[Array, "*batch N P"], y: Float[Array, "*#batch N P"]) -> Float[Array, "*batch N"]:
        return sum_observed(lambda y: self.log_density(f, y), y, self.support.member)

    def expected_log_prob(self, q: Gaussian, y: Float[Array, "*#batch N P"]) -> Float[Array, "*batch N"]:
        variance = positive(q.variance)
        return sum_observed(lambda y: self.expected_log_density(q.mean, variance, y), y, self.support.member)

    def predictive_log_prob(
        self, q: Gaussian | GaussianOverOutputs, y: Float[Array, "*#batch N P"]
    ) -> Float[Array, "*batch N"]:
        if isinstance(q, GaussianOverOutputs):
            return self.log_density_together(q, y)
        variance = positive(q.variance)
        return sum_observed(lambda y: self.predictive_log_density(q.mean, variance, y), y, self.support.member)

    def log_density_together(self, q: GaussianOverOutputs, y: Float[Array, "*#batch N P"]) -> Float[Array, "*batch N"]:
        """The same for outputs that depend on each other."""
        return log_density_together(self, q, y)

    def check_targets(self, y: ArrayLike) -> None:
        check_support(y, self.support, type(self).__name__)


class AbstractQuadratureLikelihood(AbstractScalarLikelihood):
    """A scalar likelihood whose expected log density has no closed form: Gauss-Hermite quadrature."""

    @property
    @abc.abstractmethod
    def quadrature_order(self) -> int:
        """The number of nodes: a field of the subclass."""

    def expected_log_density(self, mean, variance, y):
        return gaussian_expectation(lambda f: self.log_density(f, y), mean, variance, self.quadrature_order)
