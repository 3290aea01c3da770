"""Roots of several operators, factorised together where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import jax.numpy as jnp

from ..parameters import cast
from ._cholesky import default_jitter, safe_inverse_cholesky
from ._operators import AbstractOperator, Dense
from ._roots import AbstractRoot, InverseRoot


def roots_together(operators: Sequence[AbstractOperator], dtype) -> list[AbstractRoot]:
    """A root of each operator, in this dtype; dense ones of equal size come from one batched factorisation.

    Operators in a higher precision are factorised in it, with the jitter that the products in `dtype` need. On a GPU
    the time of a factorisation is latency: five in a batch cost little more than one.
    """
    roots: dict[int, AbstractRoot] = {}
    for size in {op.size for op in operators if isinstance(op, Dense)}:
        members = {i: op for i, op in enumerate(operators) if isinstance(op, Dense) and op.size == size}
        wide = jnp.result_type(*(op.matrix for op in members.values()))
        roots |= _dense_roots(members, default_jitter(size, dtype, factorised_in=wide))
    for index, operator in enumerate(operators):
        if index not in roots:
            roots[index] = operator.root()
    return [cast(roots[index], dtype) for index in range(len(operators))]


def _dense_roots(members: dict[int, Dense], jitter: float) -> dict[int, AbstractRoot]:
    matrices = [op.matrix.reshape(-1, *op.matrix.shape[-2:]) for op in members.values()]
    together = safe_inverse_cholesky(jnp.concatenate(matrices), jitter)
    ends = accumulate(len(matrix) for matrix in matrices)
    roots = {}
    for (index, operator), end, matrix in zip(members.items(), ends, matrices, strict=True):
        batch, own = operator.matrix.shape[:-2], slice(end - len(matrix), end)
        roots[index] = InverseRoot(*(leaf[own].reshape(batch + leaf.shape[1:]) for leaf in together))
    return roots
