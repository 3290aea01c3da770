"""Kernels of different types side by side, one per latent process."""

from __future__ import annotations

import jax.numpy as jnp

from ..errors import InputError
from ..typing import Array, Float
from ._base import AbstractKernel


class Separate(AbstractKernel):
    """Q kernels stacked along a process axis: [..., 1, N, D] inputs, or [..., Q, N, D], give [..., Q, N, M].

    Kernels of one type need no stack: give their parameters a leading axis, `RBF(lengthscale=[Q, D])`.
    """

    kernels: tuple[AbstractKernel, ...]

    def __init__(self, *kernels: AbstractKernel):
        if not kernels:
            raise InputError("Separate needs at least one kernel; got none.")
        self.kernels = kernels

    def cross(self, x, y):
        return _stack([kernel.cross(_own(x, q), _own(y, q)) for q, kernel in enumerate(self.kernels)], x, 2)

    def gram(self, x):
        return _stack([kernel.gram(_own(x, q)) for q, kernel in enumerate(self.kernels)], x, 2)

    def diag(self, x):
        return _stack([kernel.diag(_own(x, q)) for q, kernel in enumerate(self.kernels)], x, 1)


def _own(x: Float[Array, "*b N D"], process: int) -> Float[Array, "*c N D"]:
    """The inputs of one process, where the process axis isn't shared."""
    return x[..., process : process + 1, :, :] if x.ndim > 2 and x.shape[-3] > 1 else x


def _stack(parts: list[Array], x: Float[Array, "*b N D"], matrix_axes: int) -> Float[Array, "..."]:
    if x.ndim < 3:
        return jnp.stack(parts, axis=-1 - matrix_axes)
    return jnp.concatenate(parts, axis=-1 - matrix_axes)
