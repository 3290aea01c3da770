"""Every mean function: row by row, under leading axes, in both precisions, with a gradient in all its parameters."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from contracts.completeness import final_subclasses
from dgpax.means import AbstractMean, Constant, Identity, Linear, Zero
from dgpax.parameters import cast, combine, partition

MEANS = {Zero: Zero, Constant: lambda: Constant([0.5, -1.0]), Identity: Identity, Linear: lambda: Linear(MAP, 0.5)}
MAP = np.array([[1.0, 0.5], [-1.0, 2.0], [0.0, 1.0]])
WIDTHS = {Zero: 1, Constant: 2, Identity: 3, Linear: 2}


def test_every_mean_has_a_row():
    assert set(MEANS) == final_subclasses(AbstractMean)


@pytest.mark.parametrize("kind", MEANS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_mean(kind, dtype):
    mean = cast(MEANS[kind](), dtype)
    x = jr.normal(jr.key(0), (2, 5, 3), dtype)
    values = mean(x)
    assert values.shape == (2, 5, WIDTHS[kind]) and values.dtype == dtype
    tolerance = 1e-6 if dtype == jnp.float32 else 1e-14
    for same in (jax.jit(mean.__call__)(x), jax.vmap(mean)(x), jnp.stack([mean(x[:, n]) for n in range(5)], axis=1)):
        np.testing.assert_allclose(same, values, rtol=tolerance, atol=tolerance)
    trainable, fixed = partition(mean)
    slope = jax.grad(lambda trainable: jnp.sum(combine(trainable, fixed)(x) ** 2))(trainable)
    assert all(np.all(np.isfinite(leaf)) and np.any(leaf != 0) for leaf in jax.tree.leaves(slope))
