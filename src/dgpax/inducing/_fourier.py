"""Variational Fourier features [Hensman, Durrande & Solin 2018]."""

from __future__ import annotations

import math
from functools import reduce

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..errors import InputError
from ..typing import Array, Float
from ._base import AbstractInducing


class Fourier(AbstractInducing):
    """u_m = ⟨φ_m, f⟩ in the kernel's Hilbert space on [low, high]; φ = 1, cos and sin of ω_k (x − low), k = 1..F.

    ω_k = 2πk / (high − low), M = 2F + 1. For a Matérn kernel of one input (1/2, 3/2, 5/2). The features are periodic
    and f isn't, so more of them lead to the exact GP only as far as the interval is wider than the data: by several
    length scales on each side, or until the bound stops rising. `Fourier.covering` chooses one.
    """

    low: float = eqx.field(static=True, converter=float)
    high: float = eqx.field(static=True, converter=float)
    num_frequencies: int = eqx.field(static=True)

    def __check_init__(self):
        if not -math.inf < self.low < self.high < math.inf:
            raise InputError(f"Fourier(low, high) needs finite low < high; got {self.low} and {self.high}.")
        if self.num_frequencies < 1:
            raise InputError(f"Fourier(num_frequencies=...) must be at least 1; got {self.num_frequencies}.")

    @classmethod
    def covering(cls, x: Float[Array, "N D"], num_frequencies: int, margin: float = 0.5) -> Fourier:
        """On the interval of the data, widened on both sides by `margin` times its length."""
        return _part_per_column(x, num_frequencies, margin, num_columns=1)[0]

    @property
    def num_inducing(self) -> int:
        return 2 * self.num_frequencies + 1

    @property
    def frequencies(self) -> Float[np.ndarray, " F"]:
        """ω_1 … ω_F."""
        return 2.0 * math.pi / (self.high - self.low) * np.arange(1, self.num_frequencies + 1)

    def features(self, x: Float[Array, "*b N"]) -> Float[Array, "*b M N"]:
        """φ_m(x_n), for x in the interval.

        Cosines and sines of kθ, k = 0 … F, a stride of them at a time: each from the one before, turned by
        stride · θ. On a CPU F calls of cos and sin take longer than all else that is done with the features.
        """
        stride = math.isqrt(self.num_frequencies) + 1
        angle = 2.0 * math.pi / (self.high - self.low) * (x - self.low)
        first = jnp.arange(stride, dtype=x.dtype)[:, None] * angle[..., None, :]
        C, S = (wave(stride * angle)[..., None, :] for wave in (jnp.cos, jnp.sin))

        def turn(waves, _):
            c, s = waves
            return (C * c - S * s, S * c + C * s), waves

        _, blocks = lax.scan(turn, (jnp.cos(first), jnp.sin(first)), length=self.num_frequencies // stride + 1)
        cosines, sines = (jnp.moveaxis(block, 0, -3).reshape(*x.shape[:-1], -1, x.shape[-1]) for block in blocks)
        size = self.num_frequencies + 1
        return jnp.concatenate([cosines[..., :size, :], sines[..., 1:size, :]], axis=-2)


class AdditiveFourier(AbstractInducing):
    """Fourier features of every term of a sum of kernels, in the order of the sum: M = Σ M_i."""

    parts: tuple[Fourier, ...] = eqx.field(converter=tuple)

    @classmethod
    def covering(cls, x: Float[Array, "N D"], num_frequencies: int, margin: float = 0.5) -> AdditiveFourier:
        """One part per column of the data, for `Matern32().on(0) + Matern32().on(1) + …`."""
        return cls(_part_per_column(x, num_frequencies, margin, x.shape[-1]))

    @property
    def num_inducing(self) -> int:
        return sum(part.num_inducing for part in self.parts)


class ProductFourier(AbstractInducing):
    """All products of the features of the factors of a product of kernels, the last varying fastest: M = Π M_i."""

    parts: tuple[Fourier, ...] = eqx.field(converter=tuple)

    @classmethod
    def covering(cls, x: Float[Array, "N D"], num_frequencies: int, margin: float = 0.5) -> ProductFourier:
        """One part per column of the data, for `Matern32().on(0) * Matern32().on(1) * …`."""
        return cls(_part_per_column(x, num_frequencies, margin, x.shape[-1]))

    @property
    def num_inducing(self) -> int:
        return reduce(lambda size, part: size * part.num_inducing, self.parts, 1)


def _part_per_column(x, num_frequencies: int, margin: float, num_columns: int) -> tuple[Fourier, ...]:
    x = np.asarray(x)
    if x.ndim != 2 or x.shape[1] != num_columns or not x.size or not np.all(np.isfinite(x)):
        raise InputError(f"covering(x) needs finite data of shape (N, {num_columns}); got shape {x.shape}.")
    low, high = x.min(axis=0), x.max(axis=0)
    if margin < 0 or not np.all(low < high):
        raise InputError(
            f"covering(x, margin) needs margin >= 0 and columns that aren't constant; got margin {margin} and ranges "
            f"{(high - low).tolist()}. Leave constant columns out, or give Fourier(low, high, num_frequencies)."
        )
    extra = margin * (high - low)
    return tuple(Fourier(a, b, num_frequencies) for a, b in zip(low - extra, high + extra, strict=True))
