"""Covariances of averages of f over boxes and Gaussian windows, in closed form.

A window is, per column, a box of a given width convolved with a Gaussian of a given standard deviation, both centred
on the row. Width zero is a point. For an RBF kernel the Gaussians only widen the length scale, s² = ℓ² + w² + w'²,
with a factor ℓ/s [Walder et al. 2008, eq. 6]; the boxes integrate exp(−t²/2s²) once or twice.
"""

from __future__ import annotations

import math
from functools import reduce, singledispatch
from operator import add, mul

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.special import erf

from ..errors import MissingRuleError
from ..typing import Array, Float
from ._algebra import Scaled, Sum
from ._base import AbstractKernel
from ._distance import per_column
from ._inputs import ActiveDimensions
from ._simple import Constant
from ._stationary import RBF


class Window(eqx.Module):
    """Per row and column: the full width of a box and the standard deviation of a Gaussian; None where all are 0."""

    box: Float[Array, "*b N D"] | None = None
    gaussian: Float[Array, "*b N D"] | None = None

    def columns(self, index) -> Window:
        """The window in some of the columns."""
        return Window(*(None if part is None else part[..., index] for part in (self.box, self.gaussian)))


@singledispatch
def averaged_cross(
    kernel: AbstractKernel,
    x: Float[Array, "*#b N D"],
    x_window: Window | None,
    y: Float[Array, "*#b M D"],
    y_window: Window | None,
) -> Float[Array, "*c N M"]:
    """Covariance of the averages of f over the windows around the rows of x and of y."""
    names = ", ".join(kind.__name__ for kind in averaged_cross.registry if kind is not object)
    raise MissingRuleError(
        f"{type(kernel).__name__} has no closed form for integrals. Kernels that have one: {names}. "
        f"Use one of these, or observe values and derivatives only, which work for every kernel."
    )


@averaged_cross.register
def _(kernel: RBF, x, x_window, y, y_window):
    lengthscale = per_column(kernel.lengthscale, x, "length scale")
    left, right = x_window or Window(), y_window or Window()
    columns = (
        _column(
            x[..., :, None, d] - y[..., None, :, d],
            lengthscale if lengthscale.ndim == 0 else lengthscale[..., min(d, lengthscale.shape[-1] - 1), None],
            (_entry(left.gaussian, ..., slice(None), None, d), _entry(right.gaussian, ..., None, slice(None), d)),
            (_entry(left.box, ..., slice(None), None, d), _entry(right.box, ..., None, slice(None), d)),
        )
        for d in range(x.shape[-1])
    )
    return kernel.variance.value[..., None, None] * reduce(mul, columns)


@averaged_cross.register
def _(kernel: Sum, x, x_window, y, y_window):
    return reduce(add, (averaged_cross(part, x, x_window, y, y_window) for part in kernel.kernels))


@averaged_cross.register
def _(kernel: Scaled, x, x_window, y, y_window):
    return kernel.factor * averaged_cross(kernel.kernel, x, x_window, y, y_window)


@averaged_cross.register
def _(kernel: Constant, x, x_window, y, y_window):
    return kernel.cross(x, y)


@averaged_cross.register
def _(kernel: ActiveDimensions, x, x_window, y, y_window):
    select = jnp.array(kernel.dimensions)
    windows = [None if window is None else window.columns(select) for window in (x_window, y_window)]
    return averaged_cross(kernel.kernel, x[..., select], windows[0], y[..., select], windows[1])


def _entry(array, *index):
    return None if array is None else array[index]


def _column(difference, lengthscale, gaussians, boxes):
    """One factor of the product over columns: the average of exp(−t²/2ℓ²) over both windows."""
    square = reduce(add, (width**2 for width in gaussians if width is not None), lengthscale**2)
    scale = jnp.sqrt(square)
    widths = [width for width in boxes if width is not None]
    shape = (_point, _over_one_box, _over_two_boxes)[len(widths)]
    return lengthscale / scale * shape(difference, scale, *widths)


def _point(t, s):
    return jnp.exp(-0.5 * (t / s) ** 2)


def _over_one_box(t, s, h):
    """(E(t + h/2) − E(t − h/2)) / h with E' = exp(−t²/2s²); the value itself where h = 0."""
    safe = jnp.where(h == 0.0, 1.0, h)
    average = (_once(t + 0.5 * safe, s) - _once(t - 0.5 * safe, s)) / safe
    return jnp.where(h == 0.0, _point(t, s), average)


def _over_two_boxes(t, s, g, h):
    """The second difference of E₂'' = exp(−t²/2s²) over g·h; one box, or the value, where a width is 0."""
    safe_g, safe_h = jnp.where(g == 0.0, 1.0, g), jnp.where(h == 0.0, 1.0, h)
    outer, inner = 0.5 * (safe_g + safe_h), 0.5 * (safe_g - safe_h)
    corners = _twice(t + outer, s) + _twice(t - outer, s) - _twice(t + inner, s) - _twice(t - inner, s)
    average = corners / (safe_g * safe_h)
    return jnp.where(g == 0.0, _over_one_box(t, s, h), jnp.where(h == 0.0, _over_one_box(t, s, g), average))


def _once(t, s):
    """∫₀ᵗ exp(−r²/2s²) dr."""
    return math.sqrt(math.pi / 2) * s * erf(t / (math.sqrt(2) * s))


def _twice(t, s):
    """∫₀ᵗ ∫₀ʳ exp(−q²/2s²) dq dr."""
    return t * _once(t, s) + s**2 * jnp.expm1(-0.5 * (t / s) ** 2)
