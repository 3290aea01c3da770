"""Streams: the batches of memory from anywhere, in bounded memory, at any number of rows."""

from __future__ import annotations

import jax
import jax.random as jr
import numpy as np
import optax
import pytest

import dgpax
from dgpax.data import InMemory, Streamed, batch_indices, standardise, stream
from dgpax.errors import InputError, InputTypeError, MissingDataError
from dgpax.inference import Gradient, Variational, flat_adam

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
Y = np.sin(X.sum(axis=1)) + 0.1 * RNG.normal(size=300)
TABLE = np.column_stack([X, Y])
DATA = dgpax.dataset(X, Y)
ENGINE = Gradient(optimiser=optax.adam(0.01, eps=1e-3), max_steps=24, steps_per_call=5)
"""Below eps, Adam would make steps of the rounding of slopes that are zero."""


class Wave:
    """A function of the row number: as many rows as one likes, and none in memory."""

    names = ("place", "height")

    def __init__(self, num_rows: int, noise: float = 0.1):
        self.num_rows, self.noise, self.calls, self.most = num_rows, noise, 0, 0

    def read(self, rows):
        self.calls, self.most = self.calls + 1, max(self.most, len(rows))
        assert rows.dtype == np.int64 and rows.min() >= 0 and rows.max() < self.num_rows
        x = rows / self.num_rows
        chance = np.sin(12.9898 * rows) * 43758.5453
        noise = np.sqrt(12.0) * (chance - np.floor(chance) - 0.5)
        return np.stack([x, np.sin(6.0 * x) + self.noise * noise], axis=1)


def _same(a: dgpax.Fit, b: dgpax.Fit) -> bool:
    pairs = zip(jax.tree.leaves((a.model, a.posterior)), jax.tree.leaves((b.model, b.posterior)), strict=True)
    return all(np.asarray(one).tobytes() == np.asarray(other).tobytes() for one, other in pairs)


def _fit(model, feed, engine=ENGINE, **settings):
    return dgpax.fit(model, feed, "variational", engine=engine, seed=3, progress=False, **settings)


def test_a_mapped_file_trains_as_memory_does_and_goes_on_from_a_checkpoint(tmp_path):
    np.save(tmp_path / "rows.npy", TABLE)
    model = dgpax.deep_gp(DATA, 1, 5)
    feed = stream(tmp_path / "rows.npy", target=-1, batch_size=20)
    assert isinstance(feed.reader.table.source.values, np.memmap)  # pyright: ignore[reportAttributeAccessIssue]
    whole, in_memory = _fit(model, feed), _fit(model, InMemory(DATA, batch_size=20))
    for one, other in zip(
        *(jax.tree.leaves((fitted.model, fitted.posterior)) for fitted in (whole, in_memory)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)
    checkpoint = {"checkpoint": tmp_path / "here", "checkpoint_every": 0.0}
    short = _fit(model, feed, callbacks=[lambda progress: progress.step >= 10], **checkpoint)
    assert short.report.steps == 10
    again = stream(tmp_path / "rows.npy", target=-1, batch_size=20)
    resumed = _fit(model, again, **checkpoint)
    assert resumed.report.resumed_at == (10,) and _same(whole, resumed)
    with pytest.raises(InputError, match="another data"):
        _fit(model, stream(TABLE + 1e-9, target=-1, batch_size=20), **checkpoint)


def test_models_start_from_the_head_in_the_units_of_all_rows():
    feed = stream(Wave(1_000_000), target="height", batch_size=50)
    assert feed.head.num_rows == 5_000 and float(feed.head.scale) == 200.0
    assert feed.head.input_names == ("place",) and feed.head.output_names == ("height",)
    model = dgpax.deep_gp(feed, 2, 8)
    assert model.scaling is not None
    np.testing.assert_array_equal(model.scaling.x_mean, feed.standard.x_mean)
    np.testing.assert_allclose(feed.standard.x_mean, 0.5, rtol=1e-5)


@pytest.mark.parametrize("offset, scale", [(0.0, 1.0), (1e9, 1.0), (3.0, 1e200), (0.0, 1e-200), (5.0, 0.0)])
def test_the_scaling_is_that_of_memory(offset, scale, monkeypatch):
    """In pieces too, whose means differ."""
    monkeypatch.setattr("dgpax.data.streams._stream.CHUNK_ROWS", 7)
    monkeypatch.setattr("dgpax.data.streams._scan.CHUNK_ROWS", 7)
    column = scale * (offset + X[:, :1] + np.linspace(-5, 5, 300)[:, None])
    rows = np.hstack([column, Y[:, None]])
    streamed, whole = stream(rows, target=1, batch_size=2).standard, standardise(dgpax.dataset(column, Y))
    for mine, other in zip(jax.tree.leaves(streamed), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-11 if offset < 10 else 1e-7)
    exact = np.std(column.astype(np.longdouble)) if scale else 1.0
    np.testing.assert_allclose(streamed.x_scale, float(exact), rtol=1e-13)


@pytest.mark.parametrize("num_rows", [10**9, 3 * 10**9])
def test_every_row_of_a_billion_is_as_likely(num_rows):
    """Epochs are permutations; the rows of a batch are spread evenly, also in their last digits."""
    size, key = 50_000, jr.key(5)
    rows = np.concatenate([np.asarray(batch_indices(key, step, size, num_rows)) for step in (0, 1, 10_001)])
    assert rows.min() >= 0 and rows.max() < num_rows and len(np.unique(rows)) == len(rows)
    rows = rows.astype(np.int64)
    for bins in (rows * 100 // num_rows, rows % 100):
        found, expected = np.bincount(bins, minlength=100), len(rows) / 100
        assert np.sum((found - expected) ** 2 / expected) < 99 + 5 * np.sqrt(2 * 99)


def test_a_billion_rows_train_in_little_memory():
    source = Wave(10**9)
    feed = stream(source, target="height", batch_size=100, scan_rows=20_000)
    fitted = _fit(dgpax.deep_gp(feed, 1, 10), feed, Gradient(optimiser=flat_adam(0.03), max_steps=200))
    assert fitted.report.num_rows == 10**9 and source.most <= 20_000
    x = np.linspace(0.05, 0.95, 20)[:, None]
    np.testing.assert_allclose(dgpax.predict(fitted, x).mean[:, 0], np.sin(6 * x[:, 0]), atol=0.1)


def test_the_next_block_is_read_ahead_and_used():
    source = Wave(1000)
    feed = stream(source, target=1, batch_size=10)
    before, key = source.calls, jr.key(0)
    blocks = [feed.block(key, start, 5) for start in (0, 5, 10)]
    assert source.calls - before <= 4
    assert [int(block.first) for block in blocks] == [0, 5, 10]
    elsewhere = feed.block(key, 7, 5)
    np.testing.assert_array_equal(elsewhere.rows[:3], blocks[1].rows[2:])


def test_an_error_of_the_source_ends_the_fit():
    class Broken(Wave):
        def read(self, rows):
            if self.calls > 3:
                raise OSError("the disk is gone")
            return super().read(rows)

    feed = stream(Broken(1000), target=1, batch_size=10)
    with pytest.raises(OSError, match="the disk is gone"):
        _fit(dgpax.deep_gp(feed, 1, 4), feed)


def test_float32_stays():
    feed = stream(TABLE.astype(np.float32), target=2, batch_size=10)
    assert feed.head.x.dtype == feed.block(jr.key(0), 0, 1).x.dtype == np.float32


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: stream(TABLE, target=3, batch_size=5), InputError, "there are 3 columns, from 0 to 2"),
        (lambda: stream(Wave(9), target="depth", batch_size=5), InputError, "There are: 'place', 'height'"),
        (lambda: stream(TABLE, target="y", batch_size=5), InputError, "no names, so give its number"),
        (lambda: stream(TABLE, target=2, inputs=[1, 2], batch_size=5), InputError, "Column 2 is both"),
        (lambda: stream(TABLE, target=[0, 1, 2], batch_size=5), InputError, "there are no inputs"),
        (lambda: stream(TABLE, target=2, batch_size=301), InputError, "between 1 and 300"),
        (lambda: stream(TABLE, target=2, batch_size=5, scan_rows=0), InputError, "at least 1"),
        (lambda: stream(TABLE[:0], target=2, batch_size=5), InputError, "shape"),
        (lambda: stream(TABLE.astype(str), target=2, batch_size=5), InputTypeError, "numbers"),
        (lambda: stream("nowhere.npy", target=2, batch_size=5), MissingDataError, "no file nowhere.npy"),
        (lambda: stream("rows.txt", target=2, batch_size=5), InputError, r"\.npy files, folders"),
        (lambda: stream(np.where(TABLE[7, 1] == TABLE, np.nan, TABLE), target=2, batch_size=5), InputError,
         "Column 1 is nan in row 7. A stream needs numbers"),
    ],
)  # fmt: skip
def test_errors_say_what_to_do(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_what_needs_rows_in_memory_says_so():
    feed = stream(TABLE, target=2, batch_size=10)
    model = dgpax.deep_gp(feed, 1, 4, num_latents=1)
    with pytest.raises(InputError, match="encoder"):
        _fit(model, feed)
    engine = Gradient(max_steps=1)
    fitted = dgpax.fit(model, feed, Variational(latents="encoder"), engine=engine, progress=False)
    assert isinstance(feed, Streamed) and fitted.report.steps == 1
    with pytest.raises(InputError, match="in memory"):
        dgpax.fit_many([model], [feed], engine=engine)
    with pytest.raises(InputError, match="Exact needs all 300 rows"):
        dgpax.fit(dgpax.gp_regression(DATA), feed, "exact")
