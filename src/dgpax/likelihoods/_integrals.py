"""One-dimensional integrals in the log domain, entry by entry."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import logsumexp

from ..linalg import gauss_hermite
from ..typing import Array, Float

LOG_2PI = float(np.log(2.0 * np.pi))
BISECTIONS = 50

Elementwise = Callable[[Float[Array, "..."]], Float[Array, "..."]]


def nodes(mean: Float[Array, "*shape"], stddev: Float[Array, "*shape"], order: int):
    """Gauss-Hermite nodes [order, *shape] of N(mean, stddev²), and their log weights [order, 1, …, 1]."""
    z, weights = gauss_hermite(order)
    column = (-1, *([1] * mean.ndim))
    z = jnp.asarray(z, mean.dtype).reshape(column)
    return mean + stddev * z, jnp.asarray(np.log(weights), mean.dtype).reshape(column)


def log_expectation(
    log_function: Elementwise, mean: Float[Array, "*shape"], variance: Float[Array, "*shape"], order: int
) -> Float[Array, "..."]:
    """log E[exp(log_function(f))], f ~ N(mean, variance), by Gauss-Hermite quadrature around the mean."""
    f, log_weights = nodes(mean, jnp.sqrt(variance), order)
    return logsumexp(log_weights + log_function(f), axis=0)


def log_expectation_peaked(
    log_function: Elementwise,
    mean: Float[Array, "*shape"],
    variance: Float[Array, "*shape"],
    order: int,
    bracket: tuple[Float[Array, "*shape"], Float[Array, "*shape"]],
) -> Float[Array, "*shape"]:
    """The same where exp(log_function) has one peak, however narrow it is and however far from the mean.

    Adaptive Gauss-Hermite quadrature [Liu & Pierce 1994, "A note on Gauss-Hermite quadrature"]: the nodes stand
    around the mode of the integrand, which lies in the bracket, scaled by its curvature there. They are held fixed
    in derivatives, since the integral doesn't depend on them.
    """

    def log_integrand(f):
        return log_function(f) - 0.5 * ((f - mean) ** 2 / variance + jnp.log(variance) + LOG_2PI)

    slope = derivative(log_integrand)

    def halve(_, bracket):
        low, high = bracket
        middle = 0.5 * (low + high)
        rising = slope(middle) > 0
        return jnp.where(rising, middle, low), jnp.where(rising, high, middle)

    mode, _ = lax.fori_loop(0, BISECTIONS, halve, bracket)
    width = lax.rsqrt(jnp.maximum(-derivative(slope)(mode), 0.1 / variance))
    mode, width = lax.stop_gradient((mode, width))
    f, log_weights = nodes(mode, width, order)
    log_normal = -0.5 * ((f - mode) ** 2 / width**2 + LOG_2PI) - jnp.log(width)
    return logsumexp(log_weights + log_integrand(f) - log_normal, axis=0)


def derivative(function: Elementwise) -> Elementwise:
    """The derivative of an elementwise function, entry by entry."""
    return jax.grad(lambda f: jnp.sum(function(f)))


def grid(low: Float[Array, "*shape"], high: Float[Array, "*shape"], num_points: int) -> Float[Array, "G *shape"]:
    """Equally spaced points from low to high, held fixed in derivatives.

    The trapezium rule on them converges exponentially for a smooth integrand that vanishes at both ends.
    """
    low, high = lax.stop_gradient((low, high))
    fraction = jnp.linspace(0.0, 1.0, num_points, dtype=low.dtype).reshape(-1, *([1] * low.ndim))
    return low + fraction * (high - low)


def positive(variance: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The variance, with 0 (a point mass) raised to 1e-103, or 1e-13 in single precision: small enough to change
    nothing, large enough that √variance and 1/variance have finite derivatives."""
    return jnp.maximum(variance, float(jnp.finfo(variance.dtype).tiny) ** (1 / 3))
