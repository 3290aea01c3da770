"""Several places to begin at: the evidence has more than one summit."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import jax.random as jr

from ..data import Dataset, minibatch
from ..objectives import AbstractObjective
from ..parameters import Positive, combine, find, partition, set_values
from ..programs import compiled
from ..typing import Array, Float, PyTree

FACTORS = ((1.0, 1.0), (0.3, 0.1), (0.1, 0.1), (0.1, 1.0))
"""Of the length scales and of the noise. Ripples are taken for noise from long length scales and much noise."""
SIDE_BY_SIDE_UP_TO = 500
"""Rows for which a descent from every start is quick."""


def scaled_starts(target: PyTree) -> list[PyTree]:
    """The target itself, and with other length scales and less noise."""
    lengthscales, noises = (_positive(target, name) for name in ("lengthscale", "noise_variance"))
    if not lengthscales:
        return [target]
    starts = []
    for of_lengthscales, of_noise in FACTORS:
        values = {name: p.floor + of_lengthscales * (p.value - p.floor) for name, p in lengthscales.items()}
        values |= {name: p.floor + of_noise * (p.value - p.floor) for name, p in noises.items()}
        starts.append(set_values(target, values))
    return starts


def _positive(target: PyTree, ending: str) -> dict[str, Positive]:
    found = {name: p for name, p in find(target).items() if name.endswith(ending)}
    return {name: p for name, p in found.items() if p.trainable and isinstance(p, Positive)}


def worthwhile_starts(method: AbstractObjective, target: PyTree, data: Dataset) -> list[PyTree]:
    """All of them; with many rows the one that has the highest objective on some of them."""
    starts = scaled_starts(target)
    if data.num_rows <= SIDE_BY_SIDE_UP_TO or len(starts) == 1:
        return starts
    some = dataclasses.replace(minibatch(data, jr.key(0), 0, SIDE_BY_SIDE_UP_TO), scale=1.0)
    values = _objectives(method, stacked([partition(start)[0] for start in starts]), target, some)
    return [starts[int(jnp.argmax(jnp.where(jnp.isfinite(values), values, -jnp.inf)))]]


def stacked(trees: Sequence[PyTree]) -> PyTree:
    """Trees of equal structure as one whose arrays have a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


@compiled
def _objectives(method: AbstractObjective, starts: PyTree, target: PyTree, data: Dataset) -> Float[Array, " K"]:
    rest = partition(target)[1]
    return jax.lax.map(lambda start: method.terms(combine(start, rest), data, jr.key(0)).total, starts)
