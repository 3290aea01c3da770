"""Sums over rows: the only reduction there is, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from ..typing import Array, Float, PyTree

ALIGNED_ROWS = 64
"""Numbers of rows that XLA's split sums on accelerators like."""
ALIGN_FROM = 2_048
"""With fewer rows, a sum over them isn't split."""


def aligned(rows: PyTree, weights: Float[Array, " N"] | None) -> tuple[PyTree, Float[Array, " N2"] | None]:
    """Rows and their weights; on an accelerator the last row some times again, with weight 0.

    XLA cuts long sums into equal parts there, and would else copy each of the large arrays that are summed over, to pad
    it.
    """
    like = jax.tree.leaves(rows)[0]
    added = -len(like) % ALIGNED_ROWS
    if jax.default_backend() == "cpu" or len(like) < ALIGN_FROM or not added:
        return rows, weights
    weights = jnp.ones(len(like), like.dtype) if weights is None else weights
    rows = jax.tree.map(lambda leaf: jnp.concatenate([leaf, jnp.repeat(leaf[-1:], added, axis=0)]), rows)
    return rows, jnp.pad(weights, (0, added))


def sum_over_rows(
    function: Callable[[PyTree, PyTree], Any], shared: PyTree, rows: PyTree, chunk_rows: int | None
) -> Any:
    """Σ function(shared, chunk) over chunks of rows: arrays whose first axis is the row.

    The sum is an array or a tree of arrays. If it is one number, a chunk's value and gradient by `shared` are computed
    together, so that its intermediates stay in the cache and nothing is computed twice; such a sum can't be
    differentiated by `rows`. Else chunks are computed again in the backward pass.
    """
    num_rows = jax.tree.leaves(rows)[0].shape[0]
    if chunk_rows is None or chunk_rows >= num_rows:
        return function(shared, rows)
    sums = jax.tree.leaves(jax.eval_shape(function, shared, rows))
    if len(sums) == 1 and sums[0].shape == ():
        return _number(shared, rows, function, chunk_rows)
    return _add_up(jax.checkpoint(partial(function, shared)), rows, chunk_rows)


@eqx.filter_custom_vjp
def _number(shared, rows, function, chunk_rows):
    return _add_up(lambda chunk: function(shared, chunk), rows, chunk_rows)


@_number.def_fwd
def _forward(perturbed, shared, rows, function, chunk_rows):
    return _add_up(lambda chunk: eqx.filter_value_and_grad(function)(shared, chunk), rows, chunk_rows)


@_number.def_bwd
def _backward(gradient, cotangent, perturbed, shared, rows, function, chunk_rows):
    return jax.tree.map(lambda leaf: leaf * cotangent.astype(leaf.dtype), gradient)


def _add_up(part: Callable[[PyTree], PyTree], rows: PyTree, chunk_rows: int) -> PyTree:
    """Whole chunks in a loop, then the rows that are left."""
    num_rows = jax.tree.leaves(rows)[0].shape[0]
    num_chunks, rest = divmod(num_rows, chunk_rows)
    whole = num_chunks * chunk_rows
    chunks = jax.tree.map(lambda leaf: leaf[:whole].reshape(num_chunks, chunk_rows, *leaf.shape[1:]), rows)
    shapes = jax.eval_shape(part, jax.tree.map(lambda leaf: leaf[0], chunks))
    zero = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    total, _ = lax.scan(lambda sums, chunk: (jax.tree.map(jnp.add, sums, part(chunk)), None), zero, chunks)
    if rest:
        total = jax.tree.map(jnp.add, total, part(jax.tree.map(lambda leaf: leaf[whole:], rows)))
    return total
