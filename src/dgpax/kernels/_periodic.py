"""Kernels that repeat: periodic and cosine."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from ..parameters import AbstractParameter, as_positive
from ._base import AbstractKernel
from ._distance import scale_inputs, squared_distances, squared_distances_within


class Periodic(AbstractKernel):
    """variance · exp(−2 Σ_d sin²(π (x_d − y_d)/period_d) / lengthscale_d²) [MacKay 1998; R&W 2006, eq. 4.31].

    This is the RBF kernel on the circle (cos, sin)(2πx/period), which is how it is computed.

    >>> import jax.numpy as jnp
    >>> from dgpax.kernels import Periodic
    >>> Periodic(period=12.0).cross(jnp.zeros((1, 1)), jnp.full((1, 1), 24.0)).round(6)
    Array([[1.]], dtype=float64)
    """

    period: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    lengthscale: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    variance: AbstractParameter = eqx.field(converter=as_positive, default=1.0)

    def _on_circle(self, x):
        angle = 2.0 * jnp.pi * scale_inputs(x, self.period)
        circle = (jnp.cos(angle), jnp.sin(angle))
        return jnp.concatenate([scale_inputs(part, self.lengthscale) for part in circle], axis=-1)

    def cross(self, x, y):
        r2 = squared_distances(self._on_circle(x), self._on_circle(y))
        return self.variance.value[..., None, None] * jnp.exp(-0.5 * r2)

    def gram(self, x):
        r2 = squared_distances_within(self._on_circle(x))
        return self.variance.value[..., None, None] * jnp.exp(-0.5 * r2)

    def diag(self, x):
        return self.variance.value[..., None] * jnp.ones_like(self._on_circle(x)[..., 0])


class Cosine(AbstractKernel):
    """variance · cos(2π Σ_d (x_d − y_d)/lengthscale_d); one frequency, so of rank two."""

    lengthscale: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    variance: AbstractParameter = eqx.field(converter=as_positive, default=1.0)

    def _phase(self, x):
        return 2.0 * jnp.pi * jnp.sum(scale_inputs(x, self.lengthscale), axis=-1)

    def cross(self, x, y):
        return self.variance.value[..., None, None] * jnp.cos(
            self._phase(x)[..., :, None] - self._phase(y)[..., None, :]
        )

    def diag(self, x):
        return self.variance.value[..., None] * jnp.ones_like(self._phase(x))
