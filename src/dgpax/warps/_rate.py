"""Increasing functions whose log rate is a Gaussian process."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from ..kernels import AbstractKernel
from ..linalg import matmul, safe_cholesky
from ..parameters import AbstractParameter, as_positive
from ..typing import Array, Float
from ._base import AbstractWarp
from ._checks import check_knots
from ._integral import IncreasingFunctions


class IntegralWarp(AbstractWarp):
    """g(x) = x₀ + s v₀ + ∫ exp(h(z)) dz from the first knot x₀ to x, with h a GP that is known at the knots.

    The injective warp of STRIDE (equation 2 there) with a positive rate that is 1 where h = 0. `kernel` is that of h,
    `offset_variance` is s², the variance of the value at x₀.
    """

    kernel: AbstractKernel
    knots: Float[Array, " K"] = eqx.field(converter=jnp.asarray)
    offset_variance: AbstractParameter = eqx.field(converter=as_positive, default=0.01)

    def __check_init__(self):
        check_knots(self.knots)

    @property
    def num_inducing(self):
        """The log rate at the knots, and the offset."""
        return self.knots.shape[0] + 1

    @property
    def num_noise(self):
        return 0

    def draw(self, whitened, noise):
        factor = safe_cholesky(self.kernel.gram(self.knots[:, None])).factor
        log_rates = matmul(factor, whitened[..., :-1, None])[..., 0]
        start = self.knots[0] + jnp.sqrt(self.offset_variance.value) * whitened[..., -1]
        return IncreasingFunctions(self.knots, jnp.exp(log_rates), start)
