"""The contract of a kernel."""

from __future__ import annotations

import abc
from collections.abc import Callable
from numbers import Real as RealNumber

import equinox as eqx

from ..errors import InputTypeError
from ..parameters import on_one_line, table
from ..typing import Array, Float


class AbstractKernel(eqx.Module):
    """A covariance function of one latent process.

    Inputs are [..., N, D]. Parameters may have leading batch axes ([P] for a variance, [P, D] for length scales);
    they broadcast with those of the inputs, so P kernels of one type are evaluated in one call.
    """

    @abc.abstractmethod
    def cross(self, x: Float[Array, "*#b N D"], y: Float[Array, "*#b M D"]) -> Float[Array, "*b2 N M"]:
        """Covariance between two sets of points, treated as distinct even where they coincide."""

    def gram(self, x: Float[Array, "*b N D"]) -> Float[Array, "*b2 N N"]:
        """Covariance of a set of points with itself, white noise included."""
        return self.cross(x, x)

    @abc.abstractmethod
    def diag(self, x: Float[Array, "*b N D"]) -> Float[Array, "*b2 N"]:
        """The diagonal of `gram`, without building it."""

    def __call__(self, x: Float[Array, "*b N D"], y: Float[Array, "*c M D"] | None = None) -> Float[Array, "..."]:
        """`gram(x)`, or `cross(x, y)`."""
        return self.gram(x) if y is None else self.cross(x, y)

    def __repr__(self) -> str:
        return on_one_line(self)

    def _repr_html_(self) -> str:
        return table(self)._repr_html_()

    def on(self, *dimensions: int) -> AbstractKernel:
        """This kernel on some of the input columns: `RBF(0.5).on(0) * Matern32(1.0).on(1, 2)`."""
        from ._inputs import ActiveDimensions

        return ActiveDimensions(self, dimensions)

    def warp(self, function: Callable[[Float[Array, "*b N D"]], Float[Array, "*b N E"]]) -> AbstractKernel:
        """This kernel on transformed inputs."""
        from ._inputs import Warped

        return Warped(self, function)

    def __add__(self, other) -> AbstractKernel:
        from ._algebra import Sum

        return Sum(self, _as_kernel(other, "+"))

    def __radd__(self, other) -> AbstractKernel:
        from ._algebra import Sum

        return Sum(_as_kernel(other, "+"), self)

    def __mul__(self, other) -> AbstractKernel:
        from ._algebra import Product, Scaled

        return Scaled(self, other) if isinstance(other, RealNumber) else Product(self, _as_kernel(other, "*"))

    def __rmul__(self, other) -> AbstractKernel:
        return self * other

    def __pow__(self, exponent: int) -> AbstractKernel:
        from ._algebra import Power

        return Power(self, exponent)


def _as_kernel(other, sign: str) -> AbstractKernel:
    from ._simple import Constant

    if isinstance(other, AbstractKernel):
        return other
    if isinstance(other, RealNumber):
        return Constant.fixed_at(float(other))
    raise InputTypeError(f"kernel {sign} {type(other).__name__}: the other side must be a kernel or a Python number.")
