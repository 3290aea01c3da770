"""Mean functions, from [..., N, D] to [..., N, P]."""

from __future__ import annotations

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .errors import InputError
from .linalg import matmul
from .parameters import AbstractParameter, as_real, fixed
from .typing import Array, Float


class AbstractMean(eqx.Module):
    """The prior mean of a layer. The last axis of the result is P, or 1 where all outputs share it."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "*b N D"]) -> Float[Array, "*b N P"]:
        """The mean at every row."""


class Zero(AbstractMean):
    """Nothing."""

    def __call__(self, x):
        return jnp.zeros_like(x[..., :1])


class Constant(AbstractMean):
    """One number, or one per output."""

    value: AbstractParameter = eqx.field(converter=as_real, default=0.0)

    def __call__(self, x):
        return self.value.value * jnp.ones_like(x[..., :1])


class Identity(AbstractMean):
    """The input itself: P = D."""

    def __call__(self, x):
        return x


class Linear(AbstractMean):
    """x W + b, W of shape [D, P]."""

    weights: AbstractParameter = eqx.field(converter=as_real)
    bias: AbstractParameter = eqx.field(converter=as_real, default=0.0)

    def __check_init__(self):
        if len(self.weights.shape) != 2:
            raise InputError(f"means.Linear needs weights of shape (D, P); got {self.weights.shape}.")

    def __call__(self, x):
        if x.shape[-1] != self.weights.shape[0]:
            raise InputError(f"means.Linear maps {self.weights.shape[0]} columns, but got {x.shape[-1]}.")
        return matmul(x, self.weights.value) + self.bias.value


def linear_map(x: Float[Array, "N D"], num_outputs: int) -> AbstractMean:
    """The fixed mean of an inner layer [DSVI, section 4].

    The identity where the width stays; the first right singular vectors of the uncentred inputs where it
    shrinks; the inputs padded with zeros where it grows.
    """
    num_inputs = x.shape[-1]
    if num_outputs < 1:
        raise InputError(f"A layer must have at least one output; got {num_outputs}.")
    if num_outputs == num_inputs:
        return Identity()
    if num_outputs > num_inputs:
        return Linear(fixed(jnp.eye(num_inputs, num_outputs, dtype=x.dtype)), fixed(jnp.zeros((), x.dtype)))
    _, _, directions = np.linalg.svd(np.asarray(x), full_matrices=False)
    if directions.shape[0] < num_outputs:
        raise InputError(f"{x.shape[0]} rows span too few directions for a map to {num_outputs} outputs.")
    weights = jnp.asarray(directions[:num_outputs].T, x.dtype)
    return Linear(fixed(weights), fixed(jnp.zeros((), x.dtype)))
