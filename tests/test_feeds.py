"""Feeds in fits: what takes batches, and what says that it needs all rows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dgpax
from dgpax.data import InMemory, sum_over_rows
from dgpax.errors import InputError
from dgpax.inference import LBFGS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
DATA = dgpax.dataset(X, np.sin(X.sum(axis=1)))


@pytest.mark.parametrize("inference", ["exact", "sparse", "stride"])
def test_methods_that_need_all_rows_say_so(inference):
    model = dgpax.stride.Residual() if inference == "stride" else dgpax.sparse_gp_regression(DATA, 4)
    with pytest.raises(InputError, match=f"^{inference.capitalize()} needs all 30 rows in every step"):
        dgpax.fit(model, InMemory(DATA, batch_size=10), inference)


def test_engines_that_need_all_rows_say_so():
    model = dgpax.deep_gp(DATA, 1, 4)
    with pytest.raises(InputError, match=r"LBFGS needs all 30 rows.*Gradient"):
        dgpax.fit(model, InMemory(DATA, batch_size=29), "variational", engine=LBFGS())
    fitted = dgpax.fit(model, InMemory(DATA, batch_size=30), "variational", engine=LBFGS(max_steps=1), progress=False)
    assert fitted.report.steps == 1


@pytest.mark.parametrize("chunk_rows", [1, 7, 29])
def test_sums_over_rows_are_what_they_are_without_chunks(chunk_rows):
    """Of one number and of a tree of arrays, with their gradients."""
    shared = {"a": jnp.asarray([0.3, -1.2])}

    def arrays(shared, rows):
        x, y = rows
        features = jnp.tanh(x * shared["a"])
        return {"products": features.T @ features, "with y": features.T @ y}

    def number(shared, rows):
        return jnp.sum(jnp.stack([jnp.sum(leaf) for leaf in jax.tree.leaves(arrays(shared, rows))]))

    for function in (number, arrays):
        whole, parts = (
            jax.value_and_grad(lambda own, c=c, f=function: sum(map(jnp.sum, jax.tree.leaves(total(f, own, c)))))(
                shared
            )
            for c in (None, chunk_rows)
        )
        for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(parts), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def total(function, shared, chunk_rows):
    return sum_over_rows(function, shared, (jnp.asarray(X), DATA.y), chunk_rows)
