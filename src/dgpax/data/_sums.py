"""Sums over rows: the only reduction there is, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.sharding import PartitionSpec

from ..distributed import shared_by
from ..errors import InputError
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
    if shared_by() is None and (chunk_rows is None or chunk_rows >= num_rows):
        return function(shared, rows)
    sums = jax.tree.leaves(jax.eval_shape(function, shared, rows))
    if len(sums) == 1 and sums[0].shape == ():
        return _number(shared, rows, function, chunk_rows)
    return _total(lambda shared, rows: jax.checkpoint(partial(function, shared))(rows), shared, rows, chunk_rows)


@eqx.filter_custom_vjp
def _number(shared, rows, function, chunk_rows):
    return _total(function, shared, rows, chunk_rows)


@_number.def_fwd
def _forward(perturbed, shared, rows, function, chunk_rows):
    return _total(eqx.filter_value_and_grad(function), shared, rows, chunk_rows)


@_number.def_bwd
def _backward(gradient, cotangent, perturbed, shared, rows, function, chunk_rows):
    return jax.tree.map(lambda leaf: leaf * cotangent.astype(leaf.dtype), gradient)


def _total(part: Callable[[PyTree, PyTree], PyTree], shared: PyTree, rows: PyTree, chunk_rows: int | None) -> PyTree:
    """On this device; or an equal share on each, added up by one all-reduce, and the rows that are left on all."""
    mesh = shared_by()
    if mesh is None:
        return _add_up(partial(part, shared), rows, chunk_rows)
    num_rows = jax.tree.leaves(rows)[0].shape[0]
    if num_rows < mesh.size:
        raise InputError(
            f"{num_rows} rows can't be shared out among {mesh.size} devices: take larger batches, or fewer devices."
        )
    size = num_rows // mesh.size
    arrays, static = eqx.partition(shared, eqx.is_array)

    def share(arrays, rows):
        first = size * lax.axis_index(mesh.axis_names)
        own = jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, first, size), rows)
        shared = eqx.combine(arrays, static)
        vector, restore = ravel_pytree(_add_up(partial(part, shared), own, chunk_rows))
        total = restore(lax.psum(vector, mesh.axis_names))
        left = jax.tree.map(lambda leaf: leaf[size * mesh.size :], rows)
        return total if size * mesh.size == num_rows else jax.tree.map(jnp.add, total, part(shared, left))

    everything = PartitionSpec()
    split = jax.shard_map(share, mesh=mesh, in_specs=everything, out_specs=everything, check_vma=False)
    return split(arrays, rows)


def _add_up(part: Callable[[PyTree], PyTree], rows: PyTree, chunk_rows: int | None) -> PyTree:
    """Whole chunks in a loop, then the rows that are left."""
    num_rows = jax.tree.leaves(rows)[0].shape[0]
    if chunk_rows is None or chunk_rows >= num_rows:
        return part(rows)
    num_chunks, rest = divmod(num_rows, chunk_rows)
    whole = num_chunks * chunk_rows
    chunks = jax.tree.map(lambda leaf: leaf[:whole].reshape(num_chunks, chunk_rows, *leaf.shape[1:]), rows)
    shapes = jax.eval_shape(part, jax.tree.map(lambda leaf: leaf[0], chunks))
    zero = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    total, _ = lax.scan(lambda sums, chunk: (jax.tree.map(jnp.add, sums, part(chunk)), None), zero, chunks)
    if rest:
        total = jax.tree.map(jnp.add, total, part(jax.tree.map(lambda leaf: leaf[whole:], rows)))
    return total
