"""The contract of a parameter."""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..typing import Array, Float
from ._priors import AbstractPrior


class AbstractParameter(eqx.Module):
    """A value under a constraint, stored as an unconstrained array `raw`."""

    raw: eqx.AbstractVar[Float[Array, "..."]]
    trainable: eqx.AbstractVar[bool]
    prior: eqx.AbstractVar[AbstractPrior | None]

    @property
    @abc.abstractmethod
    def value(self) -> Float[Array, "..."]:
        """The constrained value."""

    @property
    @abc.abstractmethod
    def constraint(self) -> str:
        """The constraint in words, for tables."""

    @property
    def log_jacobian(self) -> Float[Array, "..."]:
        """log |d value / d free| of every entry: with it, a density of values is one on the free scale."""
        return jnp.zeros_like(self.raw)

    @property
    def free(self) -> Float[Array, "..."]:
        """The value on the scale on which beliefs about it are about normal: the logarithm of what is positive."""
        return self.raw

    def at_free(self, free: Float[Array, "..."]) -> Float[Array, "..."]:
        """The raw array at a value on the free scale."""
        return free

    def with_value(self, value) -> "AbstractParameter":
        """The same parameter (constraint, prior, trainable) at another constrained value."""
        return type(self)(value, trainable=self.trainable, prior=self.prior)  # pyright: ignore[reportCallIssue]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def dtype(self) -> jnp.dtype:
        return self.raw.dtype

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        array = np.asarray(self.value, dtype=dtype)
        return array.copy() if copy else array

    def __float__(self) -> float:
        return float(self.value)
