"""Increasing functions of one variable as integrals of a positive rate."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax

from ..errors import InputError
from ..typing import Array, Float


def monotone_integral(
    knots: Float[Array, " K"], rates: Float[Array, " K"], x: Float[Array, " N"]
) -> Float[Array, " N"]:
    """∫ rate from the first knot to x, of the rate that is linear between the knots and constant beyond them.

    The integral of that rate is exact, so the result is strictly increasing wherever the rates are positive; written
    as a sum of terms that each grow with x, it doesn't decrease in floating-point numbers either. Knots come in any
    order; those that coincide take the rate of one of them.
    """
    order = jnp.argsort(knots)
    t, rate = knots[order], rates[order]
    at_knots = integral_at_knots(t, rate)
    index = jnp.clip(jnp.searchsorted(t, x, side="right") - 1, 0, t.shape[0] - 1)
    following = jnp.minimum(index + 1, t.shape[0] - 1)
    width = t[following] - t[index]
    between = (width > 0) & (x > t[index])
    share = jnp.where(between, (x - t[index]) / jnp.where(between, width, 1.0), 0.0)
    inside = 0.5 * width * (rate[index] * (1.0 - (1.0 - share) ** 2) + rate[following] * share**2)
    outside = rate[index] * (x - t[index])
    return jnp.where(between, jnp.minimum(at_knots[index] + inside, at_knots[following]), at_knots[index] + outside)


def integral_at_knots(knots: Float[Array, " K"], rates: Float[Array, " K"]) -> Float[Array, " K"]:
    """The same at the knots, which are in order."""
    pieces = 0.5 * (rates[1:] + rates[:-1]) * jnp.diff(knots)
    return lax.cummax(jnp.concatenate([jnp.zeros_like(knots[:1]), jnp.cumsum(pieces)]))


class IncreasingFunctions(eqx.Module):
    """Functions start + ∫ rate, one per leading axis of the rates; call it with inputs, as often as you like."""

    knots: Float[Array, " K"]
    rates: Float[Array, "*s K"]
    start: Float[Array, "*s"]

    def __call__(self, x: Any) -> Float[Array, "*b N"]:
        """[*s, N] at inputs [N] or [N, 1], the same for all functions; or at [*s, N], inputs of its own for each."""
        x = jnp.asarray(x, self.rates.dtype)
        if x.ndim == 2 and x.shape[1] == 1 and self.rates.shape[:-1] != x.shape[:-1]:
            x = x[:, 0]
        if x.ndim != 1 and x.shape[:-1] != self.rates.shape[:-1]:
            raise InputError(
                f"A monotonic warp has one input: pass x of shape (N,) or (N, 1); got {x.shape}. For several inputs "
                "use a GPLayer."
            )
        integrals = jnp.vectorize(monotone_integral, signature="(k),(k),(n)->(n)")
        return self.start[..., None] + integrals(self.knots, self.rates, x)
