"""Predictions in other units."""

from __future__ import annotations

import jax.numpy as jnp

from ..typing import Array, ArrayLike, Float
from ._base import AbstractDistribution


class Affine(AbstractDistribution):
    """shift + scale · Y for a distribution of Y: how predictions return from a model's units to those of the data.

    Densities stay in log space and only the variance squares the scale, so units of 1e-200 or 1e200 do no harm.
    """

    base: AbstractDistribution
    shift: Float[Array, " P"]
    scale: Float[Array, " P"]

    def __init__(self, base: AbstractDistribution, shift: Float[Array, " P"], scale: Float[Array, " P"]):
        self.base, self.shift, self.scale = base, shift, scale

    @property
    def mean(self) -> Float[Array, "*batch N P"]:
        return self._out(self.base.mean)

    @property
    def variance(self) -> Float[Array, "*batch N P"]:
        return self.stddev**2

    @property
    def stddev(self) -> Float[Array, "*batch N P"]:
        return self.scale.astype(self.base.mean.dtype) * self.base.stddev

    def cdf(self, y: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        return self.base.cdf(self._in(y))

    def log_prob(self, y: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        return self.base.log_prob(self._in(y)) - jnp.log(self.scale).astype(self.base.mean.dtype)

    def quantile(self, p: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        return self._out(self.base.quantile(p))

    def expected_distance(self, y: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        return self._length(self.base.expected_distance(self._in(y)))

    def expected_difference(self, other: AbstractDistribution) -> Float[Array, "..."]:
        if isinstance(other, Affine) and other.shift is self.shift and other.scale is self.scale:
            inner = other.base
        else:
            inner = other.affine(-self.shift / self.scale, 1.0 / self.scale)
        return self._length(self.base.expected_difference(inner))

    def sample(self, key, num_samples: int) -> Float[Array, "num_samples *batch N P"]:
        return self._out(self.base.sample(key, num_samples))

    def affine(self, shift: Float[ArrayLike, "..."], scale: Float[ArrayLike, "..."]) -> Affine:
        return Affine(self.base, jnp.asarray(shift + scale * self.shift), jnp.asarray(scale * self.scale))

    def _in(self, y: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        return jnp.asarray((y - self.shift) / self.scale, self.base.mean.dtype)

    def _out(self, values: Float[Array, "..."]) -> Float[Array, "..."]:
        return (self.shift + self.scale * values).astype(values.dtype)

    def _length(self, values: Float[Array, "..."]) -> Float[Array, "..."]:
        return (self.scale * values).astype(values.dtype)
