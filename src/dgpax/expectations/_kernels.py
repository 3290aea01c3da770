"""Expansions of kernels around inducing points: Gaussians, linear functions, constants, and what is made of these."""

from __future__ import annotations

from functools import reduce
from operator import add

import jax.numpy as jnp

from ..errors import MissingRuleError
from ..inducing import Multiscale, Points
from ..kernels import RBF, ActiveDimensions, Constant, Linear, Product, Scaled, Sum, White
from ..parameters import AbstractParameter, fixed
from ..typing import Array, Float
from ._bumps import Bumps
from ._expansion import Expansion, expansion


@expansion.register(Points, RBF)
def _(inducing: Points, kernel: RBF) -> Expansion:
    """σ² exp(−½ Σ_d (x_d − z_d)²/ℓ_d²)."""
    z = _with_process_axis(inducing.locations)
    variance = kernel.variance.value
    return Expansion(z, (Bumps(variance[..., None], _per_column(kernel.lengthscale, z) ** -2),), variance)


@expansion.register(Multiscale, RBF)
def _(inducing: Multiscale, kernel: RBF) -> Expansion:
    """σ² Π_d ℓ_d/s_d exp(−½(x_d − z_d)²/s_d²), s² = ℓ² + w² [Walder et al. 2008, eq. 6]."""
    z, variance = _with_process_axis(inducing.locations), kernel.variance.value
    square = _per_column(kernel.lengthscale, z) ** 2
    total = square + _with_process_axis(inducing.widths) ** 2
    weight = variance[..., None] * jnp.sqrt(jnp.prod(square / total, axis=-1))
    return Expansion(z, (Bumps(weight, 1.0 / total),), variance)


@expansion.register(Points, Linear)
def _(inducing: Points, kernel: Linear) -> Expansion:
    """Σ_d σ²_d z_d x_d."""
    z = _with_process_axis(inducing.locations)
    variance = _per_column(kernel.variance, z)
    flat = jnp.zeros_like(z[:, :1])
    line = Bumps(jnp.ones_like(flat[..., 0]), flat, variance * z)
    return Expansion(z, (line,), jnp.zeros_like(variance[..., 0, 0]), variance[..., 0, :])


@expansion.register(Points, Constant)
def _(inducing: Points, kernel: Constant) -> Expansion:
    z, variance = _with_process_axis(inducing.locations), kernel.variance.value
    return Expansion(z, (Bumps(variance[..., None], jnp.zeros_like(z[0, :1])),), variance)


@expansion.register(Points, White)
def _(inducing: Points, kernel: White) -> Expansion:
    """Nothing between inducing points and x: only the variance at x."""
    return Expansion(_with_process_axis(inducing.locations), (), kernel.variance.value)


@expansion.register(Points, Sum)
def _(inducing: Points, kernel: Sum) -> Expansion:
    return reduce(_add, (expansion(inducing, part) for part in kernel.kernels))


@expansion.register(Points, Product)
def _(inducing: Points, kernel: Product) -> Expansion:
    return reduce(_multiply, (expansion(inducing, part) for part in kernel.kernels))


@expansion.register(Points, Scaled)
def _(inducing: Points, kernel: Scaled) -> Expansion:
    inner = expansion(inducing, kernel.kernel)
    bumps = tuple(Bumps(kernel.factor * one.weight, one.precision, one.slope) for one in inner.bumps)
    curvature = None if inner.curvature is None else kernel.factor * inner.curvature
    return Expansion(inner.centre, bumps, kernel.factor * inner.constant, curvature)


@expansion.register(Points, ActiveDimensions)
def _(inducing: Points, kernel: ActiveDimensions) -> Expansion:
    """Flat in the columns that the kernel doesn't see."""
    z, columns = _with_process_axis(inducing.locations), jnp.array(kernel.dimensions)

    def embed(part: Float[Array, "*p d"]) -> Float[Array, "*p D"]:
        return jnp.zeros((*part.shape[:-1], z.shape[-1]), part.dtype).at[..., columns].set(part)

    inner = expansion(Points(fixed(z[..., columns])), kernel.kernel)
    bumps = tuple(
        Bumps(one.weight, embed(one.precision), None if one.slope is None else embed(one.slope)) for one in inner.bumps
    )
    return Expansion(z, bumps, inner.constant, None if inner.curvature is None else embed(inner.curvature))


def _with_process_axis(parameter: AbstractParameter) -> Float[Array, "Q M D"]:
    value = parameter.value
    return value if value.ndim == 3 else value[None]


def _per_column(parameter: AbstractParameter, z: Float[Array, "Q M D"]) -> Float[Array, "*p 1 D"]:
    return jnp.atleast_1d(parameter.value)[..., None, :] * jnp.ones_like(z[0, :1])


def _add(left: Expansion, right: Expansion) -> Expansion:
    curvatures = [part for part in (left.curvature, right.curvature) if part is not None]
    curvature = reduce(add, curvatures) if curvatures else None
    return Expansion(left.centre, left.bumps + right.bumps, left.constant + right.constant, curvature)


def _multiply(left: Expansion, right: Expansion) -> Expansion:
    """Bumps around the same centres multiply into bumps, as long as at most one factor is linear in x."""
    if left.curvature is not None and right.curvature is not None:
        raise MissingRuleError(
            "The product of two kernels with a Linear part has no expansion: it isn't linear in x. "
            "Use samples of the inputs instead of closed forms."
        )
    curved, other = (right, left) if left.curvature is None else (left, right)
    curvature = None if curved.curvature is None else other.constant[..., None] * curved.curvature
    bumps = tuple(_product(one, two) for one in left.bumps for two in right.bumps)
    return Expansion(left.centre, bumps, left.constant * right.constant, curvature)


def _product(one: Bumps, two: Bumps) -> Bumps:
    slope = two.slope if one.slope is None else one.slope
    return Bumps(one.weight * two.weight, one.precision + two.precision, slope)
