"""Monotone functions of one variable as integrals of a positive rate."""

from __future__ import annotations

import jax.numpy as jnp

from ..typing import Array, Float


def monotone_integral(
    knots: Float[Array, " K"], rates: Float[Array, " K"], x: Float[Array, " N"]
) -> Float[Array, " N"]:
    """∫ rate from the first knot to x, of the rate that is linear between the knots and constant beyond them.

    The integral of that rate is exact, so the result is strictly increasing wherever the rates are positive. Knots
    come in any order; those that coincide take the rate of one of them.
    """
    order = jnp.argsort(knots)
    t, rate = knots[order], rates[order]
    at_knots = jnp.concatenate([jnp.zeros_like(t[:1]), jnp.cumsum(0.5 * (rate[1:] + rate[:-1]) * jnp.diff(t))])
    index = jnp.clip(jnp.searchsorted(t, x, side="right") - 1, 0, t.shape[0] - 1)
    following = jnp.minimum(index + 1, t.shape[0] - 1)
    width = t[following] - t[index]
    step = x - t[index]
    inside = (width > 0) & (step > 0)
    slope = jnp.where(inside, (rate[following] - rate[index]) / jnp.where(inside, width, 1.0), 0.0)
    return at_knots[index] + rate[index] * step + 0.5 * slope * step**2
