"""Products with triangular matrices that skip part of their zeros."""

from __future__ import annotations

from itertools import pairwise

import jax
import jax.numpy as jnp

from ..typing import Array, Float
from ._precision import matmul

CPU_BLOCKS = 4
"""Block columns on a CPU. A GPU does the whole product in less time than it takes to start four."""
MOST_BLOCK_ROWS, LEAST_ROWS_IN_A_BLOCK = 8, 25


def row_norms(A: Float[Array, "*b N M"], roots: Float[Array, "P M M"]) -> Float[Array, "*b N P"]:
    """|a_n R_p|² for every row a_n and every lower-triangular R_p.

    All R_p stand side by side in one product, whose reverse derivative then sums over p inside a product too. On a
    CPU, block columns of R leave out the zeros above them: 62% of the multiplications remain.
    """
    num_roots, size = roots.shape[0], roots.shape[-1]
    on_cpu = jax.default_backend() == "cpu"
    width = -(-size // CPU_BLOCKS) if on_cpu else size
    rows = A.reshape(-1, size)
    total = jnp.zeros((rows.shape[0], num_roots), A.dtype)
    for start in range(0, size, width):
        block = jnp.tril(roots[:, start:, start : start + width])
        side_by_side = jnp.transpose(block, (1, 2, 0)).reshape(size - start, -1)
        product = matmul(rows[:, start:], side_by_side)
        total = total + jnp.sum(product.reshape(rows.shape[0], -1, num_roots) ** 2, axis=-2)
    total = computed_once(total) if on_cpu else total
    return total.reshape(*A.shape[:-1], num_roots)


def lower_product(root: Float[Array, "N N"], x: Float[Array, "N K"]) -> Float[Array, "N K"]:
    """L x for a lower-triangular L; on a CPU in block rows that leave out the zeros behind them.

    With eight of them 9/16 of the multiplications remain.
    """
    N = root.shape[0]
    on_cpu = jax.default_backend() == "cpu"
    num_blocks = max(1, min(MOST_BLOCK_ROWS, N // LEAST_ROWS_IN_A_BLOCK)) if on_cpu else 1
    edges = [N * part // num_blocks for part in range(num_blocks + 1)]
    return jnp.concatenate([matmul(root[i:j, :j], x[:j]) for i, j in pairwise(edges)])


def computed_once(x: Float[Array, "*b P"]) -> Float[Array, "*b P"]:
    """x times the identity, which XLA's CPU compiler doesn't fuse through.

    It would else compute the derivative by x anew for each of the many numbers that x is a sum of: a quarter of the
    time of a step.
    """
    return matmul(x, jnp.eye(x.shape[-1], dtype=x.dtype))
