"""How many inducing points, and where they start."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..inducing import Points, distinct_rows, k_means
from ..layers import GPLayer
from ..model import DeepGP
from ..typing import Array, Float
from ._rows import suitable_size

INNER = 32
LAST = 256
ALL_LAYERS = 128


def suitable_counts(num_rows: int, wanted: int | None, same: bool, most_in_last: int = LAST) -> tuple[int, int]:
    """Inducing points of the inner layers and of the last, by the number of rows unless a number is wanted.

    Inner layers warp the inputs gently and need few; the last one, which is cheap, has up to 256. Few sizes, so that
    programs are shared. `same` is for posteriors that couple the layers, whose cost grows with all of them together.
    """
    most = suitable_size(num_rows) // 2
    if wanted is not None:
        return min(wanted, 2 * most), min(wanted, 2 * most)
    inner, last = (ALL_LAYERS, ALL_LAYERS) if same else (INNER, most_in_last)
    return min(inner, most), min(last, most)


def with_inducing(model: DeepGP, x: Float[Array, "N D"], counts: tuple[int, int], seed: int) -> DeepGP:
    """The model with so many inducing points in its layers, for rows in its units."""
    inner, last = (_points(x, count, seed) for count in counts)
    layers = []
    for layer in model.layers[:-1]:
        layers.append(_replaced(layer, inner))
        inner, last = layer.mean(inner), layer.mean(last)
    return DeepGP((*layers, _replaced(model.layers[-1], last)), model.likelihood, model.scaling)


def _replaced(layer: GPLayer, z: Float[Array, "M D"]) -> GPLayer:
    return eqx.tree_at(lambda layer: layer.inducing, layer, Points(z))


def _points(x: Float[Array, "N D"], count: int, seed: int) -> Float[Array, "M D"]:
    """Cluster centres; all rows where there are no more of them, and further points near them."""
    rows = np.asarray(x)[distinct_rows(x)]
    if len(rows) > count:
        return k_means(x, count, seed)
    rng = np.random.default_rng(seed)
    spread = rows.std(axis=0)
    spread = spread if np.any(spread > 0) else np.ones_like(spread)
    near = rows[rng.integers(len(rows), size=count - len(rows))]
    return jnp.asarray(np.concatenate([rows, near + 0.5 * spread * rng.normal(size=near.shape)]), x.dtype)
