"""Kernels on some of the columns, or on transformed inputs."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from ..errors import InputError
from ..typing import Array, Float
from ._base import AbstractKernel


class Warped(AbstractKernel):
    """k(w(x), w(y)); a warp that is an Equinox module is trained with the kernel."""

    kernel: AbstractKernel
    function: Callable[[Float[Array, "*b N D"]], Float[Array, "*b N E"]]

    def cross(self, x, y):
        return self.kernel.cross(self.function(x), self.function(y))

    def gram(self, x):
        return self.kernel.gram(self.function(x))

    def diag(self, x):
        return self.kernel.diag(self.function(x))


class ActiveDimensions(AbstractKernel):
    """The kernel sees only these columns of its input."""

    kernel: AbstractKernel
    dimensions: tuple[int, ...] = eqx.field(static=True, converter=tuple)

    def __check_init__(self):
        distinct = len(set(self.dimensions)) == len(self.dimensions)
        if not self.dimensions or not distinct or min(self.dimensions) < 0:
            raise InputError(f"Active dimensions must be distinct column numbers from 0 on; got {self.dimensions}.")

    def _select(self, x):
        if max(self.dimensions) >= x.shape[-1]:
            raise InputError(f"The kernel is on columns {self.dimensions}, but the input has {x.shape[-1]} columns.")
        return x[..., jnp.array(self.dimensions)]

    def cross(self, x, y):
        return self.kernel.cross(self._select(x), self._select(y))

    def gram(self, x):
        return self.kernel.gram(self._select(x))

    def diag(self, x):
        return self.kernel.diag(self._select(x))
