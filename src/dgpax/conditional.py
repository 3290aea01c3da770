"""Conditioning a layer's prior on its inducing outputs, written once for all operators."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from .covariances import Kuf
from .inducing import AbstractInducing
from .kernels import AbstractKernel
from .linalg import AbstractRoot, matmul
from .typing import Array, Float


class Projection(eqx.Module):
    """f(x) | v ~ N(A v, residual) for whitened inducing outputs v, per output (Q = P) or for all (Q = 1).

    A = (R⁻¹ Kuf)ᵀ with RRᵀ = Kuu; residual = k(x, x) − |A|², never negative.
    """

    A: Float[Array, "*b Q N M"]
    residual: Float[Array, "*b Q N"]


class JointProjection(eqx.Module):
    """As `Projection`, with the covariance across the rows."""

    A: Float[Array, "*b Q N M"]
    residual: Float[Array, "*b Q N N"]


def project(
    kernel: AbstractKernel, x: Float[Array, "*b N D"], inducing: AbstractInducing, root: AbstractRoot
) -> Projection:
    """What x has to do with the inducing outputs [DSVI, eqs. 7-8]. `root` is that of Kuu."""
    A = _whitened_cross(kernel, x, inducing, root)
    return Projection(A, jnp.maximum(_residual(kernel, x, A), 0.0))


def project_jointly(
    kernel: AbstractKernel, x: Float[Array, "*b N D"], inducing: AbstractInducing, root: AbstractRoot
) -> JointProjection:
    """As `project`, with the covariance of all rows: O(N²) memory."""
    A = _whitened_cross(kernel, x, inducing, root)
    return JointProjection(A, kernel.gram(x[..., None, :, :]) - matmul(A, jnp.swapaxes(A, -1, -2)))


def unclipped_residual(
    kernel: AbstractKernel, x: Float[Array, "*b N D"], inducing: AbstractInducing, root: AbstractRoot
) -> Float[Array, "*b Q N"]:
    """k(x, x) − |A|² as rounding leaves it, for reports: below zero where `project` clips."""
    return _residual(kernel, x, _whitened_cross(kernel, x, inducing, root))


def _whitened_cross(kernel, x, inducing, root) -> Float[Array, "*b Q N M"]:
    return jnp.swapaxes(root.solve(Kuf(inducing, kernel, x[..., None, :, :])), -1, -2)


def _residual(kernel, x, A) -> Float[Array, "*b Q N"]:
    return kernel.diag(x[..., None, :, :]) - jnp.sum(A**2, axis=-1)
