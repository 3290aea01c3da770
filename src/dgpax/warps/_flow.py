"""Increasing functions as flows of a Gaussian vector field."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from ..covariances import Kuf, Kuu
from ..errors import InputError
from ..inducing import Points
from ..kernels import AbstractKernel
from ..linalg import AbstractRoot, einsum, roots_together
from ..typing import Array, Float
from ._base import AbstractWarp
from ._checks import check_knots
from ._integral import IncreasingFunctions, integral_at_knots

LARGEST_LOG_RATE = 30.0
_SMOOTHING = {"float64": 1e-8, "float32": 1e-5}


class MonotonicFlow(AbstractWarp):
    """g(x) = X₁ where dX = μ(X, t) dt + σ(X, t) dW, X₀ = x, with one Wiener process W for all x [Ustyuzhaninov et al.
    2020, "Monotonic Gaussian process flow"].

    The vector field is a GP with inducing outputs u: given them, μ is its mean and σ² its variance. Inducing points of
    one column make a field that doesn't change in time; those of two columns are (place, time), with time from 0 to 1.

    In continuous time every x follows the same noise, so paths never cross. Euler-Maruyama steps can: x + hμ(x) +
    √h σ(x) ξ decreases in x wherever its derivative 1 + r, r = hμ' + √h σ'ξ, is below zero, and ξ has no bound. So here
    the derivative ∂X/∂x at K knots is what steps are taken for, each a factor 1 + r, and the paths of the knots are
    that of the first plus the integral of the derivative: the same scheme, up to the quadrature. A factor below ½ is
    limited to ½ exp(2r + 1), which is positive and smooth. It has the same limit, as fine steps have no such factors,
    and every draw is increasing for any number of steps. Derivatives are kept between e⁻³⁰ and e³⁰.
    """

    kernel: AbstractKernel
    inducing: Points
    knots: Float[Array, " K"] = eqx.field(converter=jnp.asarray)
    num_steps: int = eqx.field(static=True, default=20)

    def __check_init__(self):
        check_knots(self.knots)
        shape = self.inducing.locations.shape
        if len(shape) != 2 or shape[1] > 2:
            raise InputError(
                "A monotonic flow has one input: its inducing points must have shape (M, 1), places, or (M, 2), places "
                f"and times; got {shape}. For several inputs use a GPLayer."
            )
        if self.num_steps < 1:
            raise InputError(f"MonotonicFlow(num_steps=...) must be at least 1; got {self.num_steps}.")

    @property
    def num_inducing(self):
        return self.inducing.num_inducing

    @property
    def num_noise(self):
        """The Wiener increments."""
        return self.num_steps

    def draw(self, whitened, noise):
        (root,) = roots_together([Kuu(self.inducing, self.kernel)], whitened.dtype)

        def one(v, increments):
            return self._flow(root, root.solve_transposed(v[:, None])[0, :, 0], increments)

        rates, start = jnp.vectorize(one, signature="(m),(e)->(k),()")(whitened, noise)
        return IncreasingFunctions(self.knots, rates, start)

    def _flow(self, root: AbstractRoot, weights: Float[Array, " M"], noise: Float[Array, " E"]):
        """The derivative at the knots and the place of the first knot, at time 1."""
        h = 1.0 / self.num_steps
        times = h * jnp.arange(self.num_steps, dtype=noise.dtype)

        def step(state, now):
            log_rates, start = state
            time, xi = now
            places = start + integral_at_knots(self.knots, jnp.exp(log_rates))
            (drift, spread), (drift_slope, spread_slope) = jax.jvp(
                lambda at: self._field(root, weights, at, time), (places,), (jnp.ones_like(places),)
            )
            growth = _log_factor(h * drift_slope + math.sqrt(h) * spread_slope * xi)
            log_rates = jnp.clip(log_rates + growth, -LARGEST_LOG_RATE, LARGEST_LOG_RATE)
            return (log_rates, start + h * drift[0] + math.sqrt(h) * spread[0] * xi), None

        first = (jnp.zeros_like(self.knots), self.knots[0])
        (log_rates, start), _ = lax.scan(step, first, (times, noise))
        return jnp.exp(log_rates), start

    def _field(
        self, root: AbstractRoot, weights: Float[Array, " M"], places: Float[Array, " K"], time: Float[Array, ""]
    ) -> tuple[Float[Array, " K"], Float[Array, " K"]]:
        """μ = Kfu Kuu⁻¹ u and σ = √(k − Kfu Kuu⁻¹ Kuf), whose root is smoothed at zero."""
        in_time = self.inducing.locations.shape[1] == 2
        x = jnp.stack([places, jnp.full_like(places, time)], axis=-1) if in_time else places[:, None]
        cross = Kuf(self.inducing, self.kernel, x[None])
        variance = self.kernel.diag(x[None])[0]
        residual = jnp.maximum(variance - jnp.sum(root.solve(cross)[0] ** 2, axis=0), 0.0)
        smoothing = _SMOOTHING[jnp.dtype(residual.dtype).name] * variance
        spread = jnp.sqrt(residual + smoothing) - jnp.sqrt(smoothing)
        return einsum("mk,m->k", cross[0], weights), spread


def _log_factor(r: Float[Array, " K"]) -> Float[Array, " K"]:
    """log(1 + r) above −½, continued in a straight line."""
    return jnp.where(r >= -0.5, jnp.log1p(jnp.maximum(r, -0.5)), 2.0 * r + 1.0 - math.log(2.0))
