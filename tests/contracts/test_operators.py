"""Every operator against the dense matrix it stands for."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts.completeness import final_subclasses
from dgpax.linalg import (
    AbstractOperator,
    Blocks,
    Dense,
    Diagonal,
    Kronecker,
    LowRankPlusDiagonal,
)


def _spd(rng, *shape):
    a = rng.normal(size=(*shape, shape[-1]))
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])


OPERATORS = {
    Dense: lambda rng: Dense(jnp.asarray(_spd(rng, 6))),
    Diagonal: lambda rng: Diagonal(jnp.asarray(rng.uniform(0.5, 2.0, size=6))),
    Blocks: lambda rng: Blocks(jnp.asarray(_spd(rng, 2, 3))),
    Kronecker: lambda rng: Kronecker([Dense(jnp.asarray(_spd(rng, 2))), Diagonal(jnp.asarray([1.0, 2.0, 0.5]))]),
    LowRankPlusDiagonal: lambda rng: LowRankPlusDiagonal(
        jnp.asarray(rng.uniform(0.5, 2.0, size=6)), jnp.asarray(rng.normal(size=(6, 2)))
    ),
}


def test_every_operator_has_a_row():
    assert set(OPERATORS) == final_subclasses(AbstractOperator)


@pytest.mark.parametrize("kind", OPERATORS, ids=lambda kind: kind.__name__)
def test_verbs_agree_with_the_dense_matrix(kind, rng):
    operator = OPERATORS[kind](rng)
    K = np.asarray(operator.to_dense())
    x = rng.normal(size=(6, 4))
    assert operator.size == 6
    np.testing.assert_allclose(operator.diag(), np.diag(K), rtol=1e-12)
    np.testing.assert_allclose(operator.matmul(jnp.asarray(x)), K @ x, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(operator.solve(jnp.asarray(x)), np.linalg.solve(K, x), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(operator.logdet(), np.linalg.slogdet(K)[1], rtol=1e-10)


@pytest.mark.parametrize("kind", OPERATORS, ids=lambda kind: kind.__name__)
def test_root_squares_to_the_operator_and_inverts(kind, rng):
    operator = OPERATORS[kind](rng)
    root = operator.root()
    R = np.asarray(root.matmul(jnp.eye(6)))
    x = rng.normal(size=(6, 3))
    np.testing.assert_allclose(R @ R.T, operator.to_dense(), atol=1e-10)
    np.testing.assert_allclose(root.solve(jnp.asarray(x)), np.linalg.solve(R, x), atol=1e-9)
    np.testing.assert_allclose(root.solve_transposed(jnp.asarray(x)), np.linalg.solve(R.T, x), atol=1e-9)
    np.testing.assert_allclose(root.logdet(), np.linalg.slogdet(R)[1], atol=1e-10)
    assert bool(jnp.all(root.success)) and bool(jnp.all(root.jitter < 1e-9))


@pytest.mark.parametrize("kind", OPERATORS, ids=lambda kind: kind.__name__)
def test_float32_stays_float32_and_gradients_are_finite(kind, rng):
    operator = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), OPERATORS[kind](rng))
    x = jnp.ones((6, 1), jnp.float32)

    @jax.jit
    def energy(op):
        return jnp.sum(x * op.solve(x)) + op.logdet()

    value, gradient = jax.value_and_grad(energy)(operator)
    assert value.dtype == jnp.float32
    assert all(leaf.dtype == jnp.float32 and bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(gradient))


def test_rank_larger_than_size_is_refused():
    with pytest.raises(ValueError, match="Use Dense"):
        LowRankPlusDiagonal(jnp.ones(2), jnp.ones((2, 3)))


def test_kronecker_factors_with_batch_axes(rng):
    small, large = (jnp.asarray(_spd(rng, 3, size)) for size in (2, 4))
    operator, x = Kronecker([Dense(small), Dense(large)]), jnp.asarray(rng.normal(size=(1, 8, 2)))
    dense = operator.to_dense()
    for b in range(3):
        np.testing.assert_allclose(dense[b], np.kron(small[b], large[b]), rtol=1e-12)
    np.testing.assert_allclose(operator.matmul(x), dense @ x, rtol=1e-10)
    np.testing.assert_allclose(operator.solve(x), np.linalg.solve(dense, np.broadcast_to(x, (3, 8, 2))), rtol=1e-8)
