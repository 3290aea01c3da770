"""Large sums and maps in pieces, each recomputed in the backward pass, so that memory stays small there too."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from ..typing import Array, Float, Int

MAX_ENTRIES = 2**22
"""What stays near a CPU's caches. A GPU takes `GPU_FACTOR` times as much at once."""
GPU_FACTOR = 16


def map_rows(
    function: Callable[[Float[Array, "*b n D"]], Float[Array, "*c n"]], x: Float[Array, "*b N D"], entries: int
) -> Float[Array, "*c N"]:
    """function(x), in chunks of rows; `entries` are the numbers that it makes on the way for a row."""
    N = x.shape[-2]
    allowed = MAX_ENTRIES * (1 if jax.default_backend() == "cpu" else GPU_FACTOR)
    size = max(1, allowed // (entries * max(1, math.prod(x.shape[:-2]))))
    if size >= N:
        return function(x)
    padding = jnp.broadcast_to(x[..., :1, :], (*x.shape[:-2], -N % size, x.shape[-1]))
    chunks = jnp.concatenate([x, padding], axis=-2).reshape(*x.shape[:-2], -1, size, x.shape[-1])
    parts = lax.map(jax.checkpoint(function), jnp.moveaxis(chunks, -3, 0))
    rows = jnp.moveaxis(parts, 0, -2)
    return rows.reshape(*rows.shape[:-2], -1)[..., :N]


def sum_over(
    term: Callable[[Int[Array, "..."]], Float[Array, "*c"]], indices: Int[Array, "T ..."]
) -> Float[Array, "*c"]:
    """Σ_t term(indices[t]), one at a time."""
    part = jax.checkpoint(term)
    like = jax.eval_shape(part, indices[0])
    return lax.scan(lambda total, index: (total + part(index), None), jnp.zeros(like.shape, like.dtype), indices)[0]
