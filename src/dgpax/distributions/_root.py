"""Inversion of a cumulative distribution function, entry by entry, inside the compiled program."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax

from ..typing import Array, Float

MAX_STEPS = 200


def invert_cdf(
    cdf_and_density: Callable[[Float[Array, "*shape"]], tuple[Float[Array, "*shape"], Float[Array, "*shape"]]],
    p: Float[Array, "*shape"],
    start: Float[Array, "*shape"],
    low: Float[Array, "*shape"],
    high: Float[Array, "*shape"],
) -> Float[Array, "*shape"]:
    """Solve cdf(y) = p for y in [low, high], all finite, with cdf(low) ≤ p ≤ cdf(high).

    A Newton step where it stays in the bracket and at least halves the step before it, else a bisection. An entry
    is finished when the cdf agrees with p, the step vanishes or the bracket closes, all to rounding; at a jump of
    the cdf it ends on the upper side.
    """
    resolution = 8 * float(jnp.finfo(p.dtype).eps)

    def advance(carry):
        count, done, y, step, low, high = carry
        cdf, density = cdf_and_density(y)
        residual = cdf - p
        low = jnp.where(residual < 0, y, low)
        high = jnp.where(residual < 0, high, y)
        usable = (density > 0) & jnp.isfinite(density)
        newton = y - residual / jnp.where(usable, density, 1.0)
        accept = usable & (newton >= low) & (newton <= high) & (jnp.abs(newton - y) <= 0.5 * jnp.abs(step))
        agrees = jnp.abs(residual) <= resolution * p
        closed = high - low <= resolution * jnp.abs(high)
        target = jnp.where(accept, newton, 0.5 * low + 0.5 * high)
        target = jnp.where(closed, high, target)
        target = jnp.where(done | agrees, y, target)
        settled = jnp.abs(target - y) <= resolution * jnp.abs(y)
        return count + 1, done | agrees | closed | (accept & settled), target, target - y, low, high

    def unfinished(carry):
        count, done, *_ = carry
        return (count < MAX_STEPS) & ~jnp.all(done)

    done = jnp.zeros(p.shape, bool)
    start = jnp.clip(start, low, high)
    _, _, root, *_ = lax.while_loop(unfinished, advance, (0, done, start, high - low, low, high))
    return root
