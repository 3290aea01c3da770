"""Labels that depend on one latent function each: two classes, or classes in an order."""

from __future__ import annotations

import abc

import jax.numpy as jnp
import jax.random as jr

from ..distributions import Gaussian
from ..errors import InputError
from ..typing import Array, Float, RandomKey
from ._base import AbstractClassification
from ._integrals import positive
from ._scalar import AbstractScalarLikelihood
from ._support import Support, labels


class AbstractScalarClassification(AbstractScalarLikelihood, AbstractClassification):
    """Labels 0 … C−1 with p(y = c | f) of one latent function. Mean and variance take the labels as numbers."""

    @property
    @abc.abstractmethod
    def num_classes(self) -> int:
        """C."""

    @property
    def support(self) -> Support:
        return labels(self.num_classes)

    def class_probabilities(self, q: Gaussian) -> Float[Array, "*batch N C"]:
        if q.mean.shape[-1] != 1:
            raise InputError(
                f"class_probabilities is for one column of labels; q has {q.mean.shape[-1]} outputs. "
                "Ask for one output at a time, or for predictive_mean."
            )
        return jnp.exp(self.predictive_log_density(q.mean, positive(q.variance), self._labels(q.mean)))

    def conditional_mean(self, f: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        return _mean(self._labels(f), self._conditional_probabilities(f))

    def conditional_variance(self, f: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        return _variance(self._labels(f), self._conditional_probabilities(f))

    def predictive_mean(self, q: Gaussian) -> Float[Array, "*batch N P"]:
        return _mean(self._labels(q.mean), self._predictive_probabilities(q))

    def predictive_variance(self, q: Gaussian) -> Float[Array, "*batch N P"]:
        return _variance(self._labels(q.mean), self._predictive_probabilities(q))

    def sample(self, key: RandomKey, f: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        log_probabilities = self.log_density(f[..., None], self._labels(f))
        return jr.categorical(key, log_probabilities, axis=-1).astype(f.dtype)

    def _labels(self, like: Float[Array, "..."]) -> Float[Array, " C"]:
        return jnp.arange(self.num_classes, dtype=like.dtype)

    def _conditional_probabilities(self, f: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P C"]:
        return jnp.exp(self.log_density(f[..., None], self._labels(f)))

    def _predictive_probabilities(self, q: Gaussian) -> Float[Array, "*batch N P C"]:
        variance = positive(q.variance)[..., None]
        return jnp.exp(self.predictive_log_density(q.mean[..., None], variance, self._labels(q.mean)))


def _mean(labels: Float[Array, " C"], probabilities: Float[Array, "*shape C"]) -> Float[Array, "*shape"]:
    return jnp.sum(labels * probabilities, axis=-1)


def _variance(labels: Float[Array, " C"], probabilities: Float[Array, "*shape C"]) -> Float[Array, "*shape"]:
    deviation = labels - _mean(labels, probabilities)[..., None]
    return jnp.sum(deviation**2 * probabilities, axis=-1)
