"""Kernels by one word, and what comes round."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from ..kernels import RBF, Matern12, Matern32, Matern52
from ..model import DeepGP
from ._rows import Rows

KERNELS = {"rbf": RBF, "matern12": Matern12, "matern32": Matern32, "matern52": Matern52}
ROUND_START = 0.3
"""The variance of what comes round, in that of the targets."""


def shaped(model: DeepGP, word: str | None, rows: Rows) -> DeepGP:
    """The model with kernels of this family in all layers; and in a single layer with a kernel of its own for every
    place on a circle: what comes round is then known beyond the rows, too."""
    kind = KERNELS[word or "rbf"]
    if kind is not RBF:
        model = jax.tree.map(lambda part: _as(kind, part), model, is_leaf=lambda part: isinstance(part, RBF))
    if len(model.layers) > 1 or not rows.circles:
        return model
    rounds = [RBF(jnp.ones(2), jnp.asarray(ROUND_START)).on(*places) for places in rows.circles]
    return eqx.tree_at(lambda model: model.layers[0].kernel, model, replace_fn=lambda kernel: sum(rounds, kernel))


def _as(kind: type, part: object) -> object:
    return kind(part.lengthscale, part.variance) if isinstance(part, RBF) else part
