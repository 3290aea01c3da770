"""Every feed: epochs of distinct rows, a scale that makes batches stand for all, blocks that don't change batches."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dgpax
from contracts.completeness import final_subclasses
from dgpax.data import AbstractFeed, Dataset, InMemory, Streamed, identity_scaling, standardise, stream

N, SIZE = 23, 5
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(N, 2)), np.arange(N, dtype=float)
DATA = dgpax.dataset(X, Y)

FEEDS = {
    InMemory: lambda: InMemory(DATA, batch_size=SIZE),
    Streamed: lambda: stream(np.column_stack([X, Y]), target=2, batch_size=SIZE),
}


def test_every_feed_has_a_row():
    assert set(FEEDS) == final_subclasses(AbstractFeed)


@pytest.fixture(params=FEEDS, ids=lambda kind: kind.__name__)
def feed(request):
    return FEEDS[request.param]()


def _batch(feed, key, step: int, start: int = 0) -> Dataset:
    return feed.batch(feed.block(key, start, step - start + 2), key, jnp.asarray(step))


def _rows(batch: Dataset) -> list[int]:
    return np.asarray(batch.y[:, 0]).astype(int).tolist()


def test_an_epoch_has_distinct_rows_that_stand_for_all(feed, key):
    batches = [_batch(feed, key, step) for step in range(N // SIZE)]
    numbers = [number for batch in batches for number in _rows(batch)]
    assert len(set(numbers)) == len(numbers) == SIZE * (N // SIZE)
    for batch in batches:
        assert batch.num_rows == SIZE and float(batch.scale) * SIZE == pytest.approx(N)
        np.testing.assert_array_equal(batch.x, X[_rows(batch)])
        np.testing.assert_array_equal(batch.row_numbers(), _rows(batch))


def test_a_batch_is_a_function_of_key_and_step(feed, key):
    for step in (0, 3, 7):
        np.testing.assert_array_equal(_batch(feed, key, step).y, _batch(feed, key, step, start=step).y)
    assert _rows(_batch(feed, key, 0)) != _rows(_batch(feed, key, 1))


def test_what_it_says_of_itself(feed):
    assert feed.in_batches and feed.num_rows == N == float(feed.total_weight)
    for mine, other in zip(jax.tree.leaves(feed.standard), jax.tree.leaves(standardise(DATA)), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-13)
    assert set(_rows(feed.head)) <= set(range(N)) and feed.head.num_inputs == 2


def test_batches_come_in_the_units_of_the_model(feed, key):
    scaling = standardise(DATA)
    prepared = feed.prepared(scaling.dataset(feed.head), scaling)
    own = _batch(feed, key, 2)
    np.testing.assert_allclose(_batch(prepared, key, 2).x, scaling.inputs(own.x), rtol=1e-14)
    np.testing.assert_allclose(_batch(prepared, key, 2).y, scaling.outputs(own.y), rtol=1e-14)
    same = feed.prepared(feed.head, identity_scaling(2, 1))
    np.testing.assert_array_equal(_batch(same, key, 2).x, own.x)
