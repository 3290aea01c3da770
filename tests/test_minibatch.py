"""Minibatches as a function of (key, step), and hold-outs."""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal

import dgpax.data as dd
from dgpax.errors import InputError

X = np.array([[0.5, 1.0, -2.0], [1.5, 3.0, 0.25], [-1.0, 0.0, 7.0], [2.0, 4.0, 1.0]])
Y = np.array([1.0, -1.0, 0.5, 2.0])


@partial(jax.jit, static_argnums=(2, 3))
def epoch_indices(key, epoch: int, size: int, num_rows: int) -> jax.Array:
    batches = num_rows // size
    steps = epoch * batches + jnp.arange(batches)
    return jax.vmap(lambda step: dd.batch_indices(key, step, size, num_rows))(steps).ravel()


@pytest.mark.parametrize(("num_rows", "size"), [(1, 1), (2, 1), (3, 2), (7, 2), (1000, 8), (1000, 7), (1024, 1024)])
def test_an_epoch_uses_every_row_at_most_once(num_rows, size, key):
    for epoch in (0, 1, 5):
        rows = np.asarray(epoch_indices(key, epoch, size, num_rows))
        assert len(rows) == num_rows // size * size
        assert len(np.unique(rows)) == len(rows)
        assert rows.min() >= 0 and rows.max() < num_rows


def test_batches_are_a_function_of_key_and_step(key):
    compiled = jax.jit(dd.batch_indices, static_argnums=(2, 3))
    for step in (0, 3, 1000003):
        expected = dd.batch_indices(key, step, 16, 1000)
        assert_array_equal(compiled(key, jnp.asarray(step), 16, 1000), expected)
        assert_array_equal(compiled(key, jnp.asarray(step, jnp.int32), 16, 1000), expected)
    assert not np.array_equal(dd.batch_indices(jr.key(1), 0, 16, 1000), dd.batch_indices(key, 0, 16, 1000))


def test_epochs_differ(key):
    first, second = (np.asarray(epoch_indices(key, epoch, 8, 1000)) for epoch in (0, 1))
    agreements = np.sum(first == second)  # Poisson(1) for independent permutations: P(> 8) < 1e-5
    assert agreements <= 8


def chi_squared(counts: np.ndarray) -> float:
    return float(scipy.stats.chisquare(counts.ravel()).pvalue)


def permutations(num_rows: int, count: int) -> np.ndarray:
    keys = jr.split(jr.key(7), count)
    return np.asarray(jax.jit(jax.vmap(lambda key: dd.batch_indices(key, 0, num_rows, num_rows)))(keys))


@pytest.mark.parametrize("num_rows", [3, 4, 5])
def test_small_permutations_are_all_equally_likely(num_rows):
    """Chi-squared over all N! orders; a right shuffle fails with probability 1e-4."""
    draws = permutations(num_rows, 24000)
    _, counts = np.unique(draws @ (num_rows ** np.arange(num_rows)), return_counts=True)
    assert len(counts) == np.prod(np.arange(1, num_rows + 1))
    assert chi_squared(counts) > 1e-4


def test_large_permutations_are_uniform():
    """Chi-squared of positions, of neighbours and of gaps between neighbours; error rate about 1e-4 each."""
    draws = permutations(1000, 400)
    coarse = draws // 50
    position = np.repeat(np.arange(1000)[None] // 50, 400, axis=0)
    assert chi_squared(np.histogram2d(position.ravel(), coarse.ravel(), bins=20)[0]) > 1e-4
    assert chi_squared(np.histogram2d(coarse[:, ::2].ravel(), coarse[:, 1::2].ravel(), bins=20)[0]) > 1e-4
    gaps = (draws[:, 1::2] - draws[:, ::2]) % 1000
    assert chi_squared(np.bincount(gaps.ravel(), minlength=1000)[1:]) > 1e-4


@pytest.mark.parametrize("num_rows", [10**9, 2**31 - 1, 10**12])
def test_a_billion_rows(num_rows, key):
    rows = np.concatenate([dd.batch_indices(key, step, 5000, num_rows) for step in (0, 1, 2, num_rows // 5000 - 1)])
    assert rows.min() >= 0 and rows.max() < num_rows
    assert len(np.unique(rows)) == 20000
    assert scipy.stats.kstest(rows / num_rows, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("size", [0, -1, 11])
def test_impossible_batch_sizes(size, key):
    with pytest.raises(InputError, match=f"size={size}"):
        dd.batch_indices(key, 0, size, 10)


def test_minibatch_takes_rows_and_scales(key, rng):
    data = dd.dataset(pd.DataFrame({"a": np.arange(12.0)}), pd.Series(np.arange(12.0) ** 2, name="b"))
    step = eqx.filter_jit(dd.minibatch)
    seen = []
    for index in range(3):
        batch = step(data, key, jnp.asarray(index), 4)
        assert batch.scale == 3.0 and batch.x.shape == (4, 1) and batch.input_names == ("a",)
        assert_array_equal(batch.y, batch.x**2)
        seen.append(np.asarray(batch.x).ravel())
    assert_array_equal(np.sort(np.concatenate(seen)), np.arange(12.0))
    assert step(batch, key, 0, 2).scale == 6.0


@pytest.mark.parametrize("size", [4, 5])
def test_a_batch_of_everything_is_the_data(size, key):
    data = dd.dataset(X, Y)
    batch = dd.minibatch(data, key, 3, size)
    assert_array_equal(batch.x, X)
    assert batch.scale == 1.0


def test_the_scaled_sum_over_an_epoch_is_the_full_sum(key, rng):
    data = dd.dataset(rng.normal(size=(24, 1)), rng.normal(size=24))
    batches = [dd.minibatch(data, key, step, 6) for step in range(4)]
    assert_allclose(np.mean([batch.scale * jnp.sum(batch.y) for batch in batches]), jnp.sum(data.y), rtol=1e-12)


def test_split_holds_out_a_fraction(key):
    data = dd.dataset(np.arange(50.0)[:, None], np.arange(50.0))
    train, test = dd.split(data, 0.2, key)
    assert train.num_rows == 40 and test.num_rows == 10
    assert_array_equal(np.sort(np.concatenate([train.x, test.x]).ravel()), np.arange(50.0))
    assert np.all(np.diff(test.x[:, 0]) > 0)
    again, _ = dd.split(data, 0.2, jr.key(1))
    assert not np.array_equal(again.x, train.x)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, 0.05])
def test_split_needs_rows_on_both_sides(fraction, key):
    with pytest.raises(InputError, match="at least 1"):
        dd.split(dd.dataset(X, Y), fraction, key)
