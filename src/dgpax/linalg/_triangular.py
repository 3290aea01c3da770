"""Triangular matrices: products that skip part of their zeros, and the diagonal."""

from __future__ import annotations

from itertools import pairwise

import jax
import jax.numpy as jnp

from ..typing import Array, Float
from ._precision import matmul

MOST_BLOCK_ROWS, LEAST_ROWS_IN_A_BLOCK = 8, 25


def lower_product(root: Float[Array, "N N"], x: Float[Array, "N K"]) -> Float[Array, "N K"]:
    """L x for a lower-triangular L; on a CPU in block rows that leave out the zeros behind them.

    With eight of them 9/16 of the multiplications remain.
    """
    N = root.shape[0]
    on_cpu = jax.default_backend() == "cpu"
    num_blocks = max(1, min(MOST_BLOCK_ROWS, N // LEAST_ROWS_IN_A_BLOCK)) if on_cpu else 1
    edges = [N * part // num_blocks for part in range(num_blocks + 1)]
    return jnp.concatenate([matmul(root[i:j, :j], x[:j]) for i, j in pairwise(edges)])


def log_diagonal(root: Float[Array, "*b M M"]) -> Float[Array, "*b M"]:
    """The logarithms of the diagonal's absolute values.

    Picked out by a sum, whose derivative XLA fuses with what comes after; that of a gather is a scatter.
    """
    return jnp.log(jnp.abs(jnp.sum(root * jnp.eye(root.shape[-1], dtype=root.dtype), axis=-1)))
