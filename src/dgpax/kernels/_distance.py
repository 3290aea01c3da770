"""Squared distances, exact at zero distance and differentiable twice there.

A distance within rounding of the coordinates counts as zero. Without that, coincident points are a little apart in
compiled code (a fused multiply-subtract of x/ℓ and y/ℓ rounds only one of the two), not always by the same amount,
and the derivative of e⁻ʳ, of the order 1/r, blows the difference up.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from ..errors import InputError
from ..linalg import matmul
from ..parameters import AbstractParameter
from ..typing import Array, Float

DIFFERENCES_UP_TO = 16
SMOOTH_DIFFERENCES_UP_TO = 3


def per_column(
    parameter: AbstractParameter, x: Float[Array, "*b N D"], name: str
) -> Float[Array, ""] | Float[Array, "*c 1 E"]:
    """The value of a parameter, ready to broadcast with x: a scalar, or [..., D] with one entry per column."""
    value = parameter.value
    if value.ndim == 0:
        return value
    if value.shape[-1] not in (1, x.shape[-1]):
        raise InputError(
            f"The kernel has {value.shape[-1]} {name}s but its input has {x.shape[-1]} columns. "
            f"Give one {name} per column, or a single number for all."
        )
    return value[..., None, :]


def scale_inputs(x: Float[Array, "*b N D"], lengthscale: AbstractParameter) -> Float[Array, "*b2 N D"]:
    """x / lengthscale, with a scalar, or one length scale per column and leading batch axes."""
    return x / per_column(lengthscale, x, "length scale")


def squared_distances(
    x: Float[Array, "*#b N D"], y: Float[Array, "*#b M D"], *, smooth: bool = False
) -> Float[Array, "*b2 N M"]:
    """|x_n − y_m|². By differences for few columns, by one centred matrix product for many.

    `smooth` says that rounding of the order of |x|²·eps does no harm, as for functions that are smooth at zero: in
    float64 the faster product is then used from four columns on.
    """
    few = SMOOTH_DIFFERENCES_UP_TO if smooth and x.dtype == jnp.float64 else DIFFERENCES_UP_TO
    return _squared_distances(x, y, x.shape[-1] <= few)


@jax.custom_jvp
def squared_distances_within(x: Float[Array, "*b N D"]) -> Float[Array, "*b N N"]:
    """|x_n − x_m|², always by differences: the diagonal is exactly zero."""
    return _squared_distances(x, x, True)


@squared_distances_within.defjvp
def _squared_distances_within_jvp(primals, tangents):
    """As between two sets, but with one product and its transpose: in reverse, one product with a sum of two."""
    (x,), (dx,) = primals, tangents
    centred, _ = _centred(x, x)
    mixed = matmul(centred, jnp.swapaxes(dx, -1, -2))
    along = _dots(centred, dx)
    change = 2.0 * (along[..., :, None] + along[..., None, :] - mixed - jnp.swapaxes(mixed, -1, -2))
    return squared_distances_within(x), change


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _squared_distances(x, y, by_differences):
    eps = float(jnp.finfo(x.dtype).eps)
    centred_x, centred_y = _centred(x, y)
    squares = _sums_of_squares(centred_x, centred_y)
    rounding = (16.0 * eps) ** 2 * (_sums_of_squares(x, y) + squares)
    if by_differences:
        return _zero_up_to(rounding, _sum_over_columns(x, y))
    rounding = rounding + 2.0 * x.shape[-1] ** 0.5 * eps * squares
    return _zero_up_to(rounding, squares - 2.0 * matmul(centred_x, jnp.swapaxes(centred_y, -1, -2)))


@_squared_distances.defjvp
def _squared_distances_jvp(by_differences, primals, tangents):
    """2 (x_n − y_m)·(dx_n − dy_m) as matrix products, so that no [N, M, D] array is made in a backward pass."""
    distances = _squared_distances(*primals, by_differences)
    x, y = _centred(*primals)
    dx, dy = tangents
    mixed = matmul(x, jnp.swapaxes(dy, -1, -2)) + matmul(dx, jnp.swapaxes(y, -1, -2))
    return distances, 2.0 * (_dots(x, dx)[..., :, None] + _dots(y, dy)[..., None, :] - mixed)


def _centred(x, y):
    """Both less the mean of the smaller set, which takes less time than that of the larger."""
    smaller = x if x.shape[-2] <= y.shape[-2] else y
    centre = lax.stop_gradient(jnp.mean(smaller, axis=-2, keepdims=True))
    return x - centre, y - centre


def _sum_over_columns(x, y):
    if x.shape[-1] > DIFFERENCES_UP_TO:
        return jnp.sum((x[..., :, None, :] - y[..., None, :, :]) ** 2, axis=-1)
    columns = ((x[..., :, None, d] - y[..., None, :, d]) ** 2 for d in range(x.shape[-1]))
    return sum(columns, jnp.zeros((), x.dtype))


def _zero_up_to(rounding, distances):
    return jnp.where(distances < rounding, 0.0, distances)


def _sums_of_squares(x, y):
    return _dots(x, x)[..., :, None] + _dots(y, y)[..., None, :]


def _dots(x, y):
    return jnp.sum(x * y, axis=-1)
