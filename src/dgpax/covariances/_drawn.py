"""Rules for function values at locations that were drawn."""

from __future__ import annotations

import jax.numpy as jnp

from ..inducing import DrawnPoints
from ..kernels import AbstractKernel
from ..linalg import Dense
from ..typing import Array, Float
from ._rules import Kuf, Kuu


@Kuu.register(DrawnPoints, AbstractKernel)
def _(inducing: DrawnPoints, kernel: AbstractKernel) -> Dense:
    K = kernel.gram(inducing.locations)
    return Dense(K * (1.0 + inducing.nugget * jnp.eye(K.shape[-1], dtype=K.dtype)))


@Kuf.register(DrawnPoints, AbstractKernel)
def _(inducing: DrawnPoints, kernel: AbstractKernel, x: Float[Array, "*b 1 N D"]) -> Float[Array, "*c Q M N"]:
    return kernel.cross(inducing.locations, x)
