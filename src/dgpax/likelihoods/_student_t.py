"""Student's t: noise with heavy tails."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import gammaln, logsumexp

from ..parameters import AbstractParameter, as_positive
from ..typing import Array, Float
from ._gaussian import log_normal
from ._integrals import grid
from ._scalar import AbstractScalarLikelihood

NUM_POINTS = 128


class StudentT(AbstractScalarLikelihood):
    """y = f + scale · t with `degrees_of_freedom` ν; the variance is infinite for ν ≤ 2.

    Gauss-Hermite nodes miss a density that is much narrower than q(f). Both integrals are therefore rewritten so
    that f is integrated in closed form, and a smooth integral over one positive number is left.
    """

    scale: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    degrees_of_freedom: AbstractParameter = eqx.field(converter=as_positive, default=4.0)
    in_any_units = True

    def log_density(self, f, y):
        scale, df = self.scale.value, self.degrees_of_freedom.value
        return self._log_constant() - 0.5 * (df + 1.0) * jnp.log1p((y - f) ** 2 / (df * scale**2))

    def expected_log_density(self, mean, variance, y):
        width = self.degrees_of_freedom.value * self.scale.value**2
        log_term = _expected_log1p((y - mean) ** 2 / width, variance / width)
        return self._log_constant() - 0.5 * (self.degrees_of_freedom.value + 1.0) * log_term

    def predictive_log_density(self, mean, variance, y):
        """log ∫ N(y; mean, variance + scale²/λ) Gamma(λ; ν/2, ν/2) dλ, the t as a scale mixture of normals
        [Andrews & Mallows 1974], by the trapezium rule in log λ."""
        scale, df = self.scale.value, self.degrees_of_freedom.value
        mean, variance, y = jnp.broadcast_arrays(mean, variance, y)
        outlier = jnp.log((df + 1.0) / (df + ((y - mean) / scale) ** 2))
        low = jnp.minimum(outlier, 0.0) - 50.0 / df - 10.0 / jnp.sqrt(df)
        high = jnp.broadcast_to(jnp.log1p(72.0 / df + 12.0 / jnp.sqrt(df)), low.shape)
        t = grid(low, high, NUM_POINTS)
        half = 0.5 * df
        log_weight = half * (jnp.log(half) + t - jnp.exp(t)) - gammaln(half)
        log_integrand = log_weight + log_normal(y - mean, variance + scale**2 * jnp.exp(-t))
        return logsumexp(log_integrand, axis=0) + jnp.log(t[1] - t[0])

    def conditional_mean(self, f):
        return f

    def conditional_variance(self, f):
        return jnp.broadcast_to(self._noise_variance(), f.shape)

    def predictive_mean(self, q):
        return q.mean

    def predictive_variance(self, q):
        return q.variance + self._noise_variance()

    def sample(self, key, f):
        return f + self.scale.value * jr.t(key, self.degrees_of_freedom.value, f.shape, f.dtype)

    def _log_constant(self) -> Float[Array, "..."]:
        scale, df = self.scale.value, self.degrees_of_freedom.value
        return gammaln(0.5 * (df + 1.0)) - gammaln(0.5 * df) - 0.5 * jnp.log(jnp.pi * df) - jnp.log(scale)

    def _noise_variance(self) -> Float[Array, "..."]:
        df = self.degrees_of_freedom.value
        finite = df > 2.0
        return jnp.where(finite, self.scale.value**2 * df / jnp.where(finite, df - 2.0, 1.0), jnp.inf)


def _expected_log1p(square: Float[Array, "..."], variance: Float[Array, "..."]) -> Float[Array, "..."]:
    """E[log(1 + r²)] for r ~ N(√square, variance), whatever the variance, to 1e-8.

    Frullani's integral log(1 + r²) = ∫ e⁻ᵗ (1 − exp(−t r²)) dt/t turns it into one over the Laplace transform of
    r², which is (1 + 2 t variance)^(−1/2) exp(−t square/(1 + 2 t variance)); trapezium rule in x = −log t.
    """
    square, variance = jnp.broadcast_arrays(square, variance)
    low = jnp.full_like(square, -3.7)
    x = grid(low, jnp.log1p(square + variance) + 24.0, NUM_POINTS)
    t = jnp.exp(-x)
    spread = 2.0 * t * variance
    log_transform = -t * square / (1.0 + spread) - 0.5 * jnp.log1p(spread)
    return jnp.trapezoid(-jnp.exp(-t) * jnp.expm1(log_transform), x, axis=0)
