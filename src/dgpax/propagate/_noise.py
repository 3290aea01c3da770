"""Standard normal numbers, of which `propagate` makes draws of the inner layers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..layers import Layers
from ..linalg import even_normals
from ..typing import Array, Float, RandomKey

Noise = tuple[Float[Array, "..."] | None, ...]
EVEN_UP_TO = 1_000
"""Where a draw takes more numbers, as for images, even points gain nothing over independent ones."""


def draw_noise(layers: Layers, key: RandomKey, num_samples: int, num_rows: int, dtype) -> Noise:
    """[S, N, Q] for every inner layer that is drawn, None for the others; each number drawn by itself."""

    def draw(index: int, width: int):
        return jr.normal(jr.fold_in(key, index), (num_samples, num_rows, width), dtype) if width else None

    return tuple(draw(index, width) for index, width in enumerate(_widths(layers)))


def even_noise(layers: Layers, num_samples: int, seed: int, dtype) -> Noise:
    """[S, 1, Q] for every inner layer that is drawn: the same draws for all rows, evenly spread.

    What is predicted then depends on the row alone, not on those beside it, and is as smooth as the model.
    """
    widths = _widths(layers)
    if not any(widths):
        return (None,) * len(widths)
    shape, independent = (num_samples, sum(widths)), np.random.default_rng(seed)
    normals = even_normals(*shape, seed) if shape[1] <= EVEN_UP_TO else independent.normal(size=shape)
    ends = np.cumsum(widths)
    parts = (normals[:, None, end - width : end] for end, width in zip(ends, widths, strict=True))
    return tuple(jnp.asarray(part, dtype) if part.size else None for part in parts)


def for_rows(noise: Noise, num_rows: int) -> Noise:
    """[S, 1, Q] as [S, N, Q]."""
    return jax.tree.map(lambda draws: jnp.broadcast_to(draws, (len(draws), num_rows, draws.shape[-1])), noise)


def _widths(layers: Layers) -> list[int]:
    """How many numbers a row's draw takes, for every inner layer."""
    return [0 if layer.random is None else layer.random.num_draws for layer in layers[:-1]]
