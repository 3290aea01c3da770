"""Rules for derivatives and integrals."""

from __future__ import annotations

import jax.numpy as jnp

from ..inducing import BoxIntegrals, Derivatives
from ..kernels import RBF, AbstractKernel, Functional, Window, functional_cross, functional_gram, refuse_rough
from ..linalg import Dense
from ..typing import Array, Float
from ._rules import Kuf, Kuu


@Kuu.register(Derivatives, AbstractKernel)
def _(inducing: Derivatives, kernel: AbstractKernel) -> Dense:
    """∂²k(z, z')/∂z_c∂z'_c', by automatic differentiation [Rasmussen & Williams 2006, eq. 9.1]."""
    refuse_rough(kernel)
    return Dense(functional_gram(kernel, _derivatives(inducing)))


@Kuf.register(Derivatives, AbstractKernel)
def _(inducing: Derivatives, kernel: AbstractKernel, x: Float[Array, "*b 1 N D"]) -> Float[Array, "*b Q M N"]:
    return functional_cross(kernel, _derivatives(inducing), Functional(x))


@Kuu.register(BoxIntegrals, RBF)
def _(inducing: BoxIntegrals, kernel: RBF) -> Dense:
    return Dense(functional_gram(kernel, _integrals(inducing)))


@Kuf.register(BoxIntegrals, RBF)
def _(inducing: BoxIntegrals, kernel: RBF, x: Float[Array, "*b 1 N D"]) -> Float[Array, "*b Q M N"]:
    return functional_cross(kernel, _integrals(inducing), Functional(x))


def _derivatives(inducing: Derivatives) -> Functional:
    z = with_process_axis(inducing.locations.value)
    return Functional(z, weight=jnp.zeros_like(z[..., 0]), direction=with_process_axis(inducing.directions))


def _integrals(inducing: BoxIntegrals) -> Functional:
    low, high = with_process_axis(inducing.low), with_process_axis(inducing.high)
    volume = jnp.prod(high - low, axis=-1)
    return Functional(0.5 * (low + high), weight=volume, window=Window(box=high - low))


def with_process_axis(array: Float[Array, "*p M D"]) -> Float[Array, "Q M D"]:
    """[Q, M, D], with Q = 1 for locations that all processes share."""
    return array if array.ndim == 3 else array[None]
