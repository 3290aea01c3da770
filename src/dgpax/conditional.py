"""Conditioning processes on their inducing outputs, written once for all operators."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from .covariances import Kuf
from .inducing import AbstractInducing
from .kernels import AbstractKernel, AbstractMultiOutputKernel
from .linalg import AbstractRoot
from .typing import Array, Float

AnyKernel = AbstractKernel | AbstractMultiOutputKernel


class Projection(eqx.Module):
    """f(x) | v ~ N(A v, residual) for whitened inducing outputs v, per process (Q = P) or for all (Q = 1).

    A = (R⁻¹ Kuf)ᵀ with RRᵀ = Kuu; residual = k(x, x) − |A|², never negative. Where outputs share their inducing
    variables, `between` is the covariance of what these leave open, between the outputs of a row.
    """

    A: Float[Array, "*b Q N M"]
    residual: Float[Array, "*b Q N"]
    between: Float[Array, "*b N Q Q"] | None = None


def project(kernel: AnyKernel, x: Float[Array, "*b N D"], inducing: AbstractInducing, root: AbstractRoot) -> Projection:
    """What x has to do with the inducing outputs [DSVI, eqs. 7-8]. `root` is that of Kuu."""
    A = whitened_cross(kernel, x, inducing, root)
    return Projection(A, jnp.maximum(_residual(kernel, x, A), 0.0))


def whitened_cross(
    kernel: AnyKernel, x: Float[Array, "*b N D"], inducing: AbstractInducing, root: AbstractRoot
) -> Float[Array, "*b Q N M"]:
    """A = (R⁻¹ Kuf)ᵀ."""
    return jnp.swapaxes(root.solve(Kuf(inducing, kernel, x[..., None, :, :])), -1, -2)


def unclipped_residual(
    kernel: AnyKernel, x: Float[Array, "*b N D"], inducing: AbstractInducing, root: AbstractRoot
) -> Float[Array, "*b Q N"]:
    """k(x, x) − |A|² as rounding leaves it, for reports: below zero where `project` clips."""
    return _residual(kernel, x, whitened_cross(kernel, x, inducing, root))


def _residual(kernel: AnyKernel, x, A) -> Float[Array, "*b Q N"]:
    return kernel.diag(x[..., None, :, :]) - jnp.sum(A**2, axis=-1)
