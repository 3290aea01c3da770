"""Kernels whose behaviour changes over the input: Paciorek's length-scale functions, change points."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from ..errors import InputError
from ..parameters import AbstractParameter, as_positive, as_real
from ..typing import Array, Float
from ._base import AbstractKernel
from ._distance import per_column
from ._stationary import RBF, AbstractStationary


class Paciorek(AbstractKernel):
    """A stationary kernel whose length scale is a positive function ℓ of the input.

    Π_d √(2 ℓ_d(x) ℓ_d(y) / (ℓ_d(x)² + ℓ_d(y)²)) · k(r²), r² = Σ_d 2 (x_d − y_d)² / (ℓ_d(x)² + ℓ_d(y)²)
    [Paciorek & Schervish 2004, eq. 8]. `lengthscale_function` maps [..., N, D] to [..., N, D], or to [..., N, 1]
    for one length scale in all directions. The base kernel's own length scale multiplies it.
    """

    base: AbstractStationary
    lengthscale_function: Callable[[Float[Array, "*b N D"]], Float[Array, "*b N E"]]

    def _lengthscales(self, x):
        scales = self.lengthscale_function(x)
        if scales.shape[:-1] != x.shape[:-1] or scales.shape[-1] not in (1, x.shape[-1]):
            raise InputError(
                f"A length-scale function must map {x.shape} to the same shape, or to {(*x.shape[:-1], 1)}; "
                f"it gave {scales.shape}."
            )
        return jnp.broadcast_to(scales, x.shape) * per_column(self.base.lengthscale, x, "length scale")

    def cross(self, x, y):
        scale_x, scale_y = self._lengthscales(x)[..., :, None, :], self._lengthscales(y)[..., None, :, :]
        mean_square = 0.5 * (scale_x**2 + scale_y**2)
        prefactor = jnp.prod(jnp.sqrt(scale_x * scale_y / mean_square), axis=-1)
        r2 = jnp.sum((x[..., :, None, :] - y[..., None, :, :]) ** 2 / mean_square, axis=-1)
        return self.base.variance.value[..., None, None] * prefactor * self.base.shape(r2)

    def diag(self, x):
        return self.base.diag(x)


def gibbs(lengthscale_function: Callable, variance=1.0) -> Paciorek:
    """Gibbs's kernel: Paciorek's with an RBF base [Gibbs 1997, eq. 3.84]."""
    return Paciorek(RBF(1.0, variance), lengthscale_function)


class ChangePoints(AbstractKernel):
    """One kernel between each two change points along a column, blended by sigmoids of this steepness.

    Σ_i w_i(x) k_i(x, y) w_i(y), w_i = σ(s(x − c_{i−1})) (1 − σ(s(x − c_i))) [Lloyd et al. 2014].
    """

    kernels: tuple[AbstractKernel, ...] = eqx.field(converter=tuple)
    locations: AbstractParameter = eqx.field(converter=as_real)
    steepness: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    column: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        if self.locations.shape[-1:] != (len(self.kernels) - 1,):
            raise InputError(
                f"ChangePoints has {len(self.kernels)} kernels and so needs {len(self.kernels) - 1} locations; "
                f"got shape {self.locations.shape}."
            )

    def _weights(self, x):
        if not 0 <= self.column < x.shape[-1]:
            raise InputError(f"ChangePoints are along column {self.column}, but the input has {x.shape[-1]} columns.")
        steepness, locations = self.steepness.value[..., None, None], self.locations.value[..., None, :]
        gates = jax.nn.sigmoid(steepness * (x[..., self.column, None] - locations))
        ones = jnp.ones((*gates.shape[:-1], 1), gates.dtype)
        after = jnp.concatenate([ones, gates], axis=-1)
        before = jnp.concatenate([1.0 - gates, ones], axis=-1)
        return jnp.moveaxis(after * before, -1, 0)

    def cross(self, x, y):
        terms = zip(self._weights(x), self.kernels, self._weights(y), strict=True)
        return sum(w[..., :, None] * kernel.cross(x, y) * v[..., None, :] for w, kernel, v in terms)

    def gram(self, x):
        terms = zip(self._weights(x), self.kernels, strict=True)
        return sum(w[..., :, None] * kernel.gram(x) * w[..., None, :] for w, kernel in terms)

    def diag(self, x):
        return sum(w**2 * kernel.diag(x) for w, kernel in zip(self._weights(x), self.kernels, strict=True))
