"""Cholesky factors and triangular solves of batches of matrices, without batches of LAPACK calls on CPUs.

XLA's CPU client shares such a batch out to its threads and waits for them inside one. As many batches at the same time
as there are threads wait for each other forever: three triangular solves that don't need each other do so at once on
two cores (seen with jaxlib 0.10). Here LAPACK is given one matrix after the other, and small ones, of which batches are
large, are worked out by plain arithmetic on all of them at once. What `vmap` adds is an axis of the batch like others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap

from ..typing import Array, Float
from ._precision import matmul

SMALL = 8
"""Up to this size a batch is worked out entry by entry."""


def cholesky(matrix: Float[Array, "*b M M"]) -> Float[Array, "*b M M"]:
    """The lower-triangular L with LLᵀ = K, not a number where K isn't positive definite. It has no derivative."""
    return _cholesky_of_each(matrix) if jax.default_backend() == "cpu" else lax.linalg.cholesky(matrix)


def solve_triangular(
    factor: Float[Array, "*b M M"], rhs: Float[Array, "*b M K"], *, transpose: bool
) -> Float[Array, "*b M K"]:
    """L⁻¹ rhs, or L⁻ᵀ rhs, for a lower-triangular L."""
    if jax.default_backend() != "cpu":
        return lax.linalg.triangular_solve(factor, rhs, left_side=True, lower=True, transpose_a=transpose)
    forth, back = partial(_solve_each, factor), partial(_solve_each_transposed, factor)
    if transpose:
        forth, back = back, forth
    lower = jnp.tril(factor)
    return lax.custom_linear_solve(
        partial(matmul, lower.mT if transpose else lower), rhs, lambda _, b: forth(b), lambda _, b: back(b)
    )


def _each(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of matrices with equal axes in front, which `vmap` may add to."""

    @custom_vmap
    def of_batch(*matrices):
        return function(*matrices)

    @of_batch.def_vmap
    def _rule(axis_size, in_batched, *matrices):
        added = (
            matrix if batched else jnp.broadcast_to(matrix, (axis_size, *matrix.shape))
            for matrix, batched in zip(matrices, in_batched, strict=True)
        )
        return of_batch(*added), True

    return of_batch


def _one_by_one(lapack: Callable[..., Array], *matrices: Float[Array, "..."]) -> Float[Array, "*b M K"]:
    batch = matrices[0].shape[:-2]
    if not batch:
        return lapack(*matrices)
    flat = tuple(matrix.reshape(-1, *matrix.shape[-2:]) for matrix in matrices)
    result = lapack(*(matrix[0] for matrix in flat))[None] if len(flat[0]) == 1 else lax.map(lambda m: lapack(*m), flat)
    return result.reshape(*batch, *result.shape[-2:])


@_each
def _cholesky_of_each(matrix):
    if matrix.ndim == 2 or matrix.shape[-1] > SMALL:
        return _one_by_one(lax.linalg.cholesky, matrix)
    entries = _batch_last(0.5 * (matrix + matrix.mT))
    size = matrix.shape[-1]
    rows: list[list[Array]] = []
    for i in range(size):
        row: list[Array] = []
        for j in range(i):
            row.append((entries[i, j] - _dot(row, rows[j][:j])) / rows[j][j])
        rest = entries[i, i] - _dot(row, row)
        rows.append([*row, jnp.sqrt(jnp.where(rest > 0, rest, jnp.nan)), *[jnp.zeros_like(rest)] * (size - 1 - i)])
    return _batch_first(jnp.stack([jnp.stack(row) for row in rows]), matrix.shape)


@_each
def _solve_each(factor, rhs):
    return _solve(factor, rhs, transpose=False)


@_each
def _solve_each_transposed(factor, rhs):
    return _solve(factor, rhs, transpose=True)


def _solve(factor, rhs, *, transpose: bool):
    """By LAPACK, or by substitution: forwards, or backwards with the transpose."""
    size = factor.shape[-1]
    if factor.ndim == 2 or size > SMALL:
        lapack = partial(lax.linalg.triangular_solve, left_side=True, lower=True, transpose_a=transpose)
        return _one_by_one(lapack, factor, rhs)
    L, B = _batch_last(factor.mT if transpose else factor), _batch_last(rhs)
    order = range(size)[::-1] if transpose else range(size)
    solved: dict[int, Array] = {}
    for i in order:
        solved[i] = (B[i] - _dot([L[i, j] for j in solved], list(solved.values()))) / L[i, i]
    return _batch_first(jnp.stack([solved[i] for i in range(size)]), rhs.shape)


def _dot(left: list[Array], right: list[Array]) -> Array | float:
    return sum((a * b for a, b in zip(left, right, strict=True)), 0.0)


def _batch_last(matrices: Float[Array, "*b M K"]) -> Float[Array, "M K B"]:
    """So that an entry of all matrices is one stretch of memory."""
    return jnp.moveaxis(matrices.reshape(-1, *matrices.shape[-2:]), 0, -1)


def _batch_first(entries: Float[Array, "M K B"], shape: tuple[int, ...]) -> Float[Array, "*b M K"]:
    return jnp.moveaxis(entries, -1, 0).reshape(shape)
