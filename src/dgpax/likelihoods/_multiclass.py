"""Unordered classes: one latent function per class, one column of labels."""

# Without postponed annotations: Equinox must see `AbstractVar`, not a string.
import abc

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..typing import Array, Bool, Float, RandomKey
from ._base import AbstractClassification, AnyGaussian
from ._support import check_support, labels


class AbstractMulticlass(AbstractClassification):
    """A subclass gives three vectors over the classes; picking the label and missing labels are done here."""

    num_classes: eqx.AbstractVar[int]

    @abc.abstractmethod
    def log_probabilities(self, f: Float[Array, "*batch N C"]) -> Float[Array, "*batch N C"]:
        """log p(y = c | f)."""

    @abc.abstractmethod
    def expected_log_probabilities(self, q: AnyGaussian) -> Float[Array, "*batch N C"]:
        """E_q[log p(y = c | f)]."""

    def num_latents(self, num_outputs: int) -> int:
        if num_outputs != 1:
            raise InputError(
                f"{type(self).__name__} is for one column of labels; the targets have {num_outputs}. "
                "For several label columns use PerOutput, with one likelihood for each."
            )
        return self.num_classes

    def for_expectation(self, outputs) -> AnyGaussian:
        return outputs.by_row()

    def log_prob(self, f: Float[Array, "*batch N C"], y: Float[Array, "*#batch N 1"]) -> Float[Array, "*batch N"]:
        return self._pick(self.log_probabilities(f), y)

    def expected_log_prob(self, q: AnyGaussian, y: Float[Array, "*#batch N 1"]) -> Float[Array, "*batch N"]:
        return self._pick(self.expected_log_probabilities(q), y)

    def predictive_log_prob(self, q: AnyGaussian, y: Float[Array, "*#batch N 1"]) -> Float[Array, "*batch N"]:
        probabilities = self.class_probabilities(q)
        return self._pick(jnp.log(jnp.maximum(probabilities, jnp.finfo(probabilities.dtype).tiny)), y)

    def conditional_mean(self, f: Float[Array, "*batch N C"]) -> Float[Array, "*batch N C"]:
        return jnp.exp(self.log_probabilities(f))

    def conditional_variance(self, f: Float[Array, "*batch N C"]) -> Float[Array, "*batch N C"]:
        p = self.conditional_mean(f)
        return p * (1.0 - p)

    def predictive_mean(self, q: AnyGaussian) -> Float[Array, "*batch N C"]:
        return self.class_probabilities(q)

    def predictive_variance(self, q: AnyGaussian) -> Float[Array, "*batch N C"]:
        p = self.class_probabilities(q)
        return p * (1.0 - p)

    def sample(self, key: RandomKey, f: Float[Array, "*batch N C"]) -> Float[Array, "*batch N 1"]:
        return jr.categorical(key, self.log_probabilities(f), axis=-1)[..., None].astype(f.dtype)

    def encode(self, y: Float[Array, "*batch N 1"]) -> Float[Array, "*batch N C"]:
        return jnp.where(jnp.isnan(y), y, self._is_label(y).astype(y.dtype))

    def check_targets(self, y: ArrayLike) -> None:
        check_support(y, labels(self.num_classes), type(self).__name__)
        self.num_latents(np.shape(y)[-1])

    def _is_label(self, y: Float[Array, "*batch N 1"]) -> Bool[Array, "*batch N C"]:
        return y == jnp.arange(self.num_classes, dtype=y.dtype)

    def _pick(self, values: Float[Array, "*batch N C"], y: Float[Array, "*#batch N 1"]) -> Float[Array, "*batch N"]:
        """The value at the label; 0 where the label is missing."""
        return jnp.sum(jnp.where(self._is_label(y), values, 0.0), axis=-1)


def check_num_classes(owner: str, num_classes: int) -> None:
    if num_classes < 2:
        raise InputError(f"{owner} needs at least 2 classes; got num_classes={num_classes}.")
