"""The rows at which functions are looked at: every input over its range, with the others where they may be."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.stats import qmc

from ..design import Space
from ..typing import Float

GRID = 24
"""Values of an input: the middles of as many equal parts of its range."""
ROWS_AT_ONCE = 512


class Crossed(NamedTuple):
    """All pairs of a value of some inputs with a point for the others, [G, M, E], and the values, [G, d], in the unit
    cube."""

    rows: Float[np.ndarray, "G M E"]
    values: Float[np.ndarray, "G d"]


def crossed(space: Space, inputs: tuple[int, ...], points: Float[np.ndarray, "M D"]) -> Crossed:
    """These inputs over their ranges, each pair of values with the same points for the others."""
    axes = np.meshgrid(*[_middles(space, index) for index in inputs], indexing="ij")
    values = np.stack([axis.ravel() for axis in axes], axis=1)
    u = np.broadcast_to(points, (len(values), *points.shape)).copy()
    u[:, :, list(inputs)] = values[:, None]
    rows = space.rows(jnp.asarray(u.reshape(-1, points.shape[1])))
    return Crossed(np.asarray(rows).reshape(*u.shape[:2], -1), values)


def even_points(space: Space, count: int, seed: int) -> Float[np.ndarray, "M D"]:
    """A scrambled Sobol' sequence."""
    sampler = qmc.Sobol(len(space.names), rng=np.random.default_rng(seed))
    return space.snapped(sampler.random(1 << (count - 1).bit_length()))


def evaluated(functions, rows: Float[np.ndarray, "N E"], output: int) -> Float[np.ndarray, "S N"]:
    """All functions at all rows, some at a time."""
    missing = -len(rows) % ROWS_AT_ONCE
    whole = np.concatenate([rows, np.broadcast_to(rows[:1], (missing, rows.shape[1]))])
    chunks = whole.reshape(-1, ROWS_AT_ONCE, rows.shape[1])
    parts = [np.asarray(functions(jnp.asarray(chunk)))[..., output] for chunk in chunks]
    return np.concatenate(parts, axis=1)[:, : len(rows)]


def _middles(space: Space, index: int) -> Float[np.ndarray, " G"]:
    """In the unit cube; all values where there are no more of them."""
    u = np.full((GRID, len(space.names)), 0.5)
    u[:, index] = (np.arange(GRID) + 0.5) / GRID
    return np.unique(space.snapped(u)[:, index])
