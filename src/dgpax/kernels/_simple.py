"""Constant and white noise."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from ..errors import InputError
from ..parameters import AbstractParameter, as_positive, fixed
from ._base import AbstractKernel


class Constant(AbstractKernel):
    """The same covariance between all points: an unknown offset."""

    variance: AbstractParameter = eqx.field(converter=as_positive, default=1.0)

    @classmethod
    def fixed_at(cls, variance: float) -> Constant:
        """With a variance that isn't trained: what `kernel + 1.0` adds."""
        if not 0 <= variance < float("inf"):
            raise InputError(f"A number added to a kernel is a variance and must be at least 0; got {variance}.")
        return cls(fixed(variance))

    def cross(self, x, y):
        return self.variance.value[..., None, None] * jnp.ones_like(x[..., :, None, 0] + y[..., None, :, 0])

    def diag(self, x):
        return self.variance.value[..., None] * jnp.ones_like(x[..., 0])


class White(AbstractKernel):
    """Independent noise at every point: the identity in `gram`, nothing between two sets of points.

    >>> import jax.numpy as jnp
    >>> from dgpax.kernels import White
    >>> White(0.1).cross(jnp.zeros((1, 1)), jnp.zeros((1, 1)))
    Array([[0.]], dtype=float64)
    """

    variance: AbstractParameter = eqx.field(converter=as_positive, default=1.0)

    def cross(self, x, y):
        return self.variance.value[..., None, None] * jnp.zeros_like(x[..., :, None, 0] + y[..., None, :, 0])

    def gram(self, x):
        same = jnp.broadcast_to(jnp.eye(x.shape[-2], dtype=x.dtype), (*x.shape[:-1], x.shape[-2]))
        return self.variance.value[..., None, None] * same

    def diag(self, x):
        return self.variance.value[..., None] * jnp.ones_like(x[..., 0])


class MarkedWhite(AbstractKernel):
    """Independent noise at marked points: of variance Σ_d variance_d over the inputs d in which they are positive.

    >>> import jax.numpy as jnp
    >>> from dgpax.kernels import MarkedWhite
    >>> MarkedWhite([0.5, 2.0]).diag(jnp.asarray([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]))
    Array([0. , 0.5, 2.5], dtype=float64)
    """

    variance: AbstractParameter = eqx.field(converter=as_positive)

    def cross(self, x, y):
        return self.diag(x)[..., :, None] * jnp.zeros_like(y[..., None, :, 0])

    def gram(self, x):
        noise = self.diag(x)
        return noise[..., :, None] * jnp.eye(x.shape[-2], dtype=noise.dtype)

    def diag(self, x):
        return jnp.sum(jnp.where(x > 0, self.variance.value[..., None, :], 0.0), axis=-1)
