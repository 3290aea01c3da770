"""Covariances of linear functionals of f: values, derivatives, and averages over windows."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax

from ..typing import Array, Float
from ._base import AbstractKernel
from ._windows import Window, averaged_cross


class Functional(eqx.Module):
    """One functional per row: weight · f̄(x) + direction · ∇f̄(x), with f̄ the average of f over a window around x.

    What is None is absent: weight 1, no derivative, no window.
    """

    x: Float[Array, "*b N D"]
    weight: Float[Array, "*b N"] | None = None
    direction: Float[Array, "*b N D"] | None = None
    window: Window | None = None


def functional_cross(kernel: AbstractKernel, a: Functional, b: Functional) -> Float[Array, "*c N M"]:
    """Cov(L_n f, L'_m f) = L_n L'_m k, the derivatives exactly by automatic differentiation [FRAMEWORK, eq. 22].

    An entry depends on one row of each side only, so that one forward derivative serves all rows at once.
    """

    def averaged(x, y):
        if a.window is None and b.window is None:
            return kernel.cross(x, y)
        return averaged_cross(kernel, x, a.window, y, b.window)

    def of_rows(x):
        return _apply(lambda y: averaged(x, y), b.x, b.direction, _times(b.weight, ..., None, slice(None)))

    return _apply(of_rows, a.x, a.direction, _times(a.weight, ..., slice(None), None))


def functional_gram(kernel: AbstractKernel, a: Functional) -> Float[Array, "*c N N"]:
    """The covariance of functionals among themselves, exactly symmetric."""
    K = functional_cross(kernel, a, a)
    return 0.5 * (K + K.mT)


def _times(weight: Float[Array, "*b N"] | None, *index) -> Callable:
    return (lambda value: value) if weight is None else (lambda value: weight[index] * value)


def _apply(function: Callable, x, direction, weighted: Callable):
    if direction is None:
        return weighted(function(x))
    value, slope = jax.jvp(function, (x,), (direction,))
    return weighted(value) + slope
