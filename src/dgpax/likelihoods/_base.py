"""The contract of a likelihood p(y | f).

Axes: f has Q latent functions, y has P observed outputs, usually Q = P; `num_latents` tells. Everything broadcasts
over leading axes: f is [*batch, N, Q], y is [N, P] or [*batch, N, P], and a density has one value per row.

Missing outputs are NaN in y. They are integrated out: they add nothing to a density, and no NaN to its gradient.

Labels are whole numbers 0 … C−1, stored as floats in one column. The mean and the variance of y are those of
`encode(y)`, which is y itself except for unordered labels: those become their one-hot vector, so that their mean is
the vector of class probabilities. The encoded y has E columns, E = P except for unordered labels, where E = C.
"""

from __future__ import annotations

import abc
from typing import ClassVar

import equinox as eqx
from numpy.typing import ArrayLike

from ..distributions import Gaussian, GaussianOverOutputs
from ..typing import Array, Float, RandomKey

AnyGaussian = Gaussian | GaussianOverOutputs


class AbstractLikelihood(eqx.Module):
    """p(y | f), row by row, and its integrals under a Gaussian q(f), with the covariance between the latent functions
    of a row where these depend on each other and the integral on that."""

    in_any_units: ClassVar[bool] = False
    """Whether it is for real numbers with a scale of their own that is trained, so that they are standardised."""

    @abc.abstractmethod
    def num_latents(self, num_outputs: int) -> int:
        """Q, how many latent functions P observed outputs need."""

    @abc.abstractmethod
    def for_expectation(self, outputs) -> AnyGaussian:
        """Of a layer's outputs, what `expected_log_prob`, the predicted moments and the components depend on: every
        one by itself, `outputs.marginal()`, or together where they depend on each other, `outputs.by_row()`."""

    def for_density(self, outputs) -> AnyGaussian:
        """Of a layer's outputs, what `predictive_log_prob` depends on."""
        return outputs.by_row()

    @abc.abstractmethod
    def log_prob(self, f: Float[Array, "*batch N Q"], y: Float[Array, "*#batch N P"]) -> Float[Array, "*batch N"]:
        """log p(y_n | f_n), summed over the observed outputs."""

    @abc.abstractmethod
    def expected_log_prob(self, q: AnyGaussian, y: Float[Array, "*#batch N P"]) -> Float[Array, "*batch N"]:
        """E_q[log p(y_n | f_n)]: the data term of the ELBO."""

    @abc.abstractmethod
    def predictive_log_prob(self, q: AnyGaussian, y: Float[Array, "*#batch N P"]) -> Float[Array, "*batch N"]:
        """log ∫ p(y_n | f_n) q(f_n) df_n."""

    @abc.abstractmethod
    def conditional_mean(self, f: Float[Array, "*batch N Q"]) -> Float[Array, "*batch N E"]:
        """E[y | f]."""

    @abc.abstractmethod
    def conditional_variance(self, f: Float[Array, "*batch N Q"]) -> Float[Array, "*batch N E"]:
        """Var[y | f], each column alone."""

    @abc.abstractmethod
    def predictive_mean(self, q: AnyGaussian) -> Float[Array, "*batch N E"]:
        """E[y] = E_q[E[y | f]]."""

    @abc.abstractmethod
    def predictive_variance(self, q: AnyGaussian) -> Float[Array, "*batch N E"]:
        """Var[y] = E_q[Var[y | f]] + Var_q[E[y | f]], each column alone."""

    def components(self, q: AnyGaussian) -> Gaussian | None:
        """Gaussians of y, of which its distribution under q is an equal mixture, [S, N, P]; None if it isn't one."""
        return None

    @abc.abstractmethod
    def sample(self, key: RandomKey, f: Float[Array, "*batch N Q"]) -> Float[Array, "*batch N P"]:
        """One draw of y for every row of f."""

    def encode(self, y: Float[Array, "*batch N P"]) -> Float[Array, "*batch N E"]:
        """The numbers whose mean and variance are reported: y, or one-hot vectors for unordered labels."""
        return y

    @abc.abstractmethod
    def check_targets(self, y: ArrayLike) -> None:
        """Raise `InputError` if y holds a value that this likelihood gives no density to. Not for use inside jit."""


class AbstractClassification(AbstractLikelihood):
    """Labels 0 … C−1; C is the attribute `num_classes`."""

    @abc.abstractmethod
    def class_probabilities(self, q: AnyGaussian) -> Float[Array, "*batch N C"]:
        """P(y = c) for every class, integrated over q; they sum to 1."""
