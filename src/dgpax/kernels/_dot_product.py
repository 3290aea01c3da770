"""Kernels of the inner product: linear, polynomial, arc-cosine."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from ..errors import InputError
from ..linalg import matmul
from ..parameters import AbstractParameter, as_positive
from ..typing import Array, Float
from ._base import AbstractKernel
from ._distance import per_column


def _weighted(x: Float[Array, "*b N D"], variance: AbstractParameter) -> Float[Array, "*b2 N D"]:
    return x * per_column(variance, x, "variance")


def _inner(x, y, variance):
    return matmul(_weighted(x, variance), jnp.swapaxes(y, -1, -2))


def _inner_diag(x, variance):
    return jnp.sum(_weighted(x, variance) * x, axis=-1)


class Linear(AbstractKernel):
    """Σ_d variance_d x_d y_d: straight lines through the origin; add a Constant for an offset.

    >>> import jax.numpy as jnp
    >>> from dgpax.kernels import Constant, Linear
    >>> line = Linear() + Constant()  # with an offset
    >>> line.cross(jnp.full((1, 1), 2.0), jnp.full((1, 1), 3.0)).round(6)
    Array([[7.]], dtype=float64)
    """

    variance: AbstractParameter = eqx.field(converter=as_positive, default=1.0)

    def cross(self, x, y):
        return _inner(x, y, self.variance)

    def diag(self, x):
        return _inner_diag(x, self.variance)


class Polynomial(AbstractKernel):
    """(Σ_d variance_d x_d y_d + offset)^degree."""

    degree: int = eqx.field(static=True, default=2)
    variance: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    offset: AbstractParameter = eqx.field(converter=as_positive, default=1.0)

    def __check_init__(self):
        if not isinstance(self.degree, int) or self.degree < 1:
            raise InputError(f"Polynomial(degree=...) must be a whole number, at least 1; got {self.degree!r}.")

    def cross(self, x, y):
        return (_inner(x, y, self.variance) + self.offset.value[..., None, None]) ** self.degree

    def diag(self, x):
        return (_inner_diag(x, self.variance) + self.offset.value[..., None]) ** self.degree


def _angle(cosine):
    return jnp.arccos(jnp.clip(cosine, -1.0, 1.0))


@jax.custom_jvp
def _arc_0(cosine):
    return 1.0 - _angle(cosine) / jnp.pi


@jax.custom_jvp
def _arc_1(cosine):
    theta = _angle(cosine)
    return (jnp.sin(theta) + (jnp.pi - theta) * jnp.cos(theta)) / jnp.pi


@jax.custom_jvp
def _arc_2(cosine):
    theta = _angle(cosine)
    turn = (jnp.pi - theta) * (1.0 + 2.0 * jnp.cos(theta) ** 2)
    return (3.0 * jnp.sin(theta) * jnp.cos(theta) + turn) / jnp.pi


@_arc_0.defjvp
def _(primals, tangents):
    (cosine,) = primals
    inside = jnp.abs(cosine) < 1.0
    slope = jnp.where(inside, 1.0 / (jnp.pi * jnp.sqrt(1.0 - jnp.where(inside, cosine, 0.0) ** 2)), 0.0)
    return _arc_0(cosine), slope * tangents[0]


@_arc_1.defjvp
def _(primals, tangents):
    return _arc_1(*primals), _arc_0(*primals) * tangents[0]


@_arc_2.defjvp
def _(primals, tangents):
    return _arc_2(*primals), 4.0 * _arc_1(*primals) * tangents[0]


_ARC = (_arc_0, _arc_1, _arc_2)


class ArcCosine(AbstractKernel):
    """variance · |x|ⁿ|y|ⁿ Jₙ(θ)/π: the covariance of an infinitely wide layer of units max(0, w·x)ⁿ.

    The inner product is Σ_d weight_variance_d x_d y_d + bias_variance [Cho & Saul 2009, eqs. 3-6]. As functions
    of c = cos θ the three Jₙ/π form a ladder, dJₙ/dc = n² Jₙ₋₁, which gives exact derivatives at θ = 0.
    """

    order: int = eqx.field(static=True, default=1)
    weight_variance: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    bias_variance: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    variance: AbstractParameter = eqx.field(converter=as_positive, default=1.0)

    def __check_init__(self):
        if self.order not in (0, 1, 2):
            raise InputError(f"ArcCosine(order=...) must be 0, 1 or 2; got {self.order!r}.")

    def _norm(self, x):
        return jnp.sqrt(_inner_diag(x, self.weight_variance) + self.bias_variance.value[..., None])

    def cross(self, x, y):
        inner = _inner(x, y, self.weight_variance) + self.bias_variance.value[..., None, None]
        norms = self._norm(x)[..., :, None] * self._norm(y)[..., None, :]
        return self.variance.value[..., None, None] * norms**self.order * _ARC[self.order](inner / norms)

    def gram(self, x):
        off_diagonal = 1.0 - jnp.eye(x.shape[-2], dtype=x.dtype)
        return self.cross(x, x) * off_diagonal + self.diag(x)[..., None] * (1.0 - off_diagonal)

    def diag(self, x):
        at_zero_angle = (1.0, 1.0, 3.0)[self.order]
        return self.variance.value[..., None] * at_zero_angle * self._norm(x) ** (2 * self.order)
