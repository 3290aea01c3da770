"""A step that ruins a fit is undone."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from ..typing import Array, Bool, Float, Int
from ._base import keep_where

NATS_PER_ROW, SPREADS = 1.0, 5.0
"""An objective has collapsed if it is so far below its running mean, in both units together."""
WINDOW, KEEP_EVERY = 20, 50


class Refuge(NamedTuple):
    """A state that was good at most some steps ago, and what objectives were of late: mean and mean deviation.

    `seen` counts them.
    """

    state: Any
    level: Float[Array, ""]
    spread: Float[Array, ""]
    seen: Int[Array, ""]


def refuge(state: Any) -> Refuge:
    """Before the first step."""
    number = jnp.result_type(float)
    return Refuge(state, jnp.zeros((), number), jnp.zeros((), number), jnp.zeros((), int))


def collapsed(kept: Refuge, objective: Float[Array, ""], num_rows: Float[Array, ""]) -> Bool[Array, ""]:
    """Whether the objective of a state says that something went wrong on the way to it.

    Not before it is known how much objectives of minibatches vary: far from the end, by many nats per row.
    """
    too_low = objective < kept.level - NATS_PER_ROW * num_rows - SPREADS * kept.spread
    return too_low & (kept.seen >= WINDOW)


def updated(kept: Refuge, state: Any, objective: Float[Array, ""], step: Int[Array, ""]) -> Refuge:
    """After the objective of a state that hasn't collapsed."""
    first = kept.seen == 0
    change = jnp.where(first, 0.0, objective - kept.level)
    level = jnp.where(first, objective, kept.level + change / WINDOW).astype(kept.level.dtype)
    spread = (kept.spread + (jnp.abs(change) - kept.spread) / WINDOW).astype(kept.spread.dtype)
    keep = (step % KEEP_EVERY == 0) & (change >= 0)
    return Refuge(keep_where(keep, state, kept.state), level, spread, kept.seen + 1)


def doubtful(kept: Refuge, objective: Float[Array, ""]) -> Refuge:
    """After the objective of a state that has collapsed.

    They may vary more than was known, and if that is all, the fifth such objective in a row passes at the latest: a fit
    that went back again and again would go nowhere.
    """
    spread = kept.spread + jnp.abs(objective - kept.level) / WINDOW
    return kept._replace(spread=spread.astype(kept.spread.dtype))
