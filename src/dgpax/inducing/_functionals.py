"""Derivatives and integrals of f."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..errors import InputError
from ..parameters import AbstractParameter, as_real
from ..typing import Array, Float
from ._base import AbstractInducing


def _as_columns(column) -> int | tuple[int, ...]:
    return column if isinstance(column, int) else tuple(int(one) for one in column)


class Derivatives(AbstractInducing):
    """u_m = ∂f/∂x_c (z_m), locations z being [M, D] or [P, M, D]; c is one column for all, or a list of M."""

    locations: AbstractParameter = eqx.field(converter=as_real)
    column: int | tuple[int, ...] = eqx.field(static=True, converter=_as_columns, default=0)

    def __check_init__(self):
        shape = self.locations.shape
        if len(shape) not in (2, 3) or 0 in shape:
            raise InputError(f"Derivatives(locations=...) needs shape (M, D), or (P, M, D); got {shape}.")
        columns = [self.column] if isinstance(self.column, int) else self.column
        if len(columns) not in (1, shape[-2]):
            raise InputError(f"Derivatives(column=...) needs one column, or {shape[-2]}; got {len(columns)}.")
        if min(columns) < 0 or max(columns) >= shape[-1]:
            raise InputError(f"Derivatives(column=...) must be from 0 to {shape[-1] - 1}; got {self.column}.")

    @property
    def num_inducing(self) -> int:
        return self.locations.shape[-2]

    @property
    def directions(self) -> Float[Array, "*p M D"]:
        """Unit vectors, one per location."""
        z = self.locations.value
        columns = np.broadcast_to(np.asarray(self.column), z.shape[:-1])
        return jax.nn.one_hot(columns, z.shape[-1], dtype=z.dtype)


class BoxIntegrals(AbstractInducing):
    """u_m = ∫ f(x) dx over the box from low_m to high_m, both [M, D] or [P, M, D]. The boxes are constants."""

    low: Float[Array, "*p M D"] = eqx.field(converter=jnp.asarray)
    high: Float[Array, "*p M D"] = eqx.field(converter=jnp.asarray)

    def __check_init__(self):
        if self.low.ndim not in (2, 3) or self.low.shape != self.high.shape:
            raise InputError(
                "BoxIntegrals(low, high) needs both of shape (M, D), or (P, M, D) for separate ones; got "
                f"{self.low.shape} and {self.high.shape}."
            )
        ordered = jnp.all(self.low < self.high)
        if not isinstance(ordered, Tracer) and not bool(ordered):
            raise InputError("BoxIntegrals(low, high) needs low < high in every entry. Swap the two, or use Points.")

    @property
    def num_inducing(self) -> int:
        return self.low.shape[-2]
