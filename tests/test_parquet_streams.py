"""Parquet tables as streams: the encoding of memory to the last bit, converted once, with errors in words."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import dgpax
from dgpax.data import Encoding, stream
from dgpax.data.streams import _convert
from dgpax.data.streams._median import exact_median
from dgpax.errors import InputError, InputTypeError, MissingDataError, ModelFileError

pytest.importorskip("pyarrow")
N = 40
RNG = np.random.default_rng(0)


def _gaps(values: list, *places: int) -> list:
    return [None if index in places else value for index, value in enumerate(values)]


def _frame() -> pd.DataFrame:
    places = [["sea", "town", ""][i] for i in RNG.integers(0, 3, N)]
    times = [datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=7 * i) for i in range(N)]
    return pd.DataFrame(
        {
            "size": RNG.normal(size=N),
            "place": pd.Series(_gaps(places, 1, 30), dtype="object"),
            "age": pd.Series(_gaps(RNG.normal(size=N).tolist(), 2, 3, 39), dtype="float64"),
            "narrow": RNG.normal(size=N).astype(np.float32),
            "count": np.arange(N),
            "new": pd.Series(_gaps((RNG.normal(size=N) > 0).tolist(), 5), dtype="object"),
            "kind": pd.Categorical(np.where(RNG.normal(size=N) > 0, "a", "b")),
            "built": pd.Series(_gaps(times, 4), dtype="datetime64[us, UTC]"),
            "lasted": pd.to_timedelta(RNG.integers(1, 99, N), unit="h"),
            "price": RNG.normal(size=N),
        }
    )


@pytest.fixture
def table(tmp_path):
    """A folder of two files, of several row groups each."""
    frame, folder = _frame(), tmp_path / "table"
    folder.mkdir()
    frame[:25].to_parquet(folder / "a.parquet", row_group_size=7, index=False)
    frame[25:].to_parquet(folder / "b.parquet", row_group_size=11, index=False)
    return frame, folder


def _stream(folder, **settings):
    return stream(folder, **{"target": "price", "batch_size": 10, "cache": folder.parent / "cache", **settings})


def _rows(feed) -> np.ndarray:
    return np.asarray(feed.reader.table.source.values)


def test_the_encoding_is_that_of_memory_to_the_last_bit(table):
    frame, folder = table
    feed, whole = _stream(folder), _stream(folder / "a.parquet", inputs=["age", "place"])
    inputs = frame.drop(columns="price")
    encoding = Encoding.of(inputs)
    assert feed.encoding == encoding and encoding.places[2] == range(4, 6)
    assert "built time of day" in encoding.circles and not np.isnan(_rows(feed)).any()
    expected = np.column_stack([encoding.apply(inputs), frame["price"]])
    assert _rows(feed).tobytes() == expected.tobytes()
    part = frame[:25][["age", "place"]]
    assert whole.encoding == Encoding.of(part)
    np.testing.assert_array_equal(_rows(whole)[:, :-1], Encoding.of(part).apply(part))


def test_a_frame_in_memory_is_encoded_too(table):
    frame, folder = table
    feed = stream(frame, target="price", batch_size=10)
    assert feed.encoding is not None and feed.encoding == _stream(folder).encoding
    assert feed.head.input_names == feed.encoding.output_names
    np.testing.assert_array_equal(_rows(feed), _rows(_stream(folder)))


def test_numbers_of_single_precision_stay(tmp_path):
    pd.DataFrame({"a": np.arange(9, dtype=np.float32), "b": np.ones(9, np.float32)}).to_parquet(tmp_path / "t.parquet")
    assert _rows(_stream(tmp_path / "t.parquet", target="b", batch_size=3)).dtype == np.float32


def test_a_table_is_converted_once_and_again_when_it_changed(table, monkeypatch):
    frame, folder = table
    first = _rows(_stream(folder))
    kept, convert = list((folder.parent / "cache").iterdir()), _convert._convert
    monkeypatch.setattr(_convert, "_convert", None)
    np.testing.assert_array_equal(_rows(_stream(folder)), first)
    monkeypatch.setattr(_convert, "_convert", convert)
    frame["price"] += 1.0
    frame[25:].to_parquet(folder / "b.parquet", row_group_size=11, index=False)
    np.testing.assert_array_equal(_rows(_stream(folder))[25:, -1], frame["price"][25:])
    assert len(list((folder.parent / "cache").iterdir())) == len(kept) + 1


def test_a_conversion_that_was_tampered_with_is_refused(table):
    _, folder = table
    _stream(folder)
    (path,) = (folder.parent / "cache").glob("*/rows.npy")
    stored = bytearray(path.read_bytes())
    stored[-1] ^= 1
    path.write_bytes(bytes(stored))
    with pytest.raises(ModelFileError, match="Delete it, and it is converted anew"):
        _stream(folder)


def test_a_disk_that_fills_up_leaves_nothing_behind(table, monkeypatch):
    _, folder = table
    monkeypatch.setattr(_convert.shutil, "disk_usage", lambda path: SimpleNamespace(free=100))
    with pytest.raises(InputError, match=r"bytes are needed in .*cache, and 100 are free there"):
        _stream(folder)
    monkeypatch.undo()

    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_convert, "_write", full)
    with pytest.raises(InputError, match=r"No space left on device.*Choose another cache"):
        _stream(folder)
    assert not list((folder.parent / "cache").iterdir())


def test_a_row_group_that_cannot_be_read_is_named(table):
    _, folder = table
    path = folder / "b.parquet"
    stored = bytearray(path.read_bytes())
    stored[4:400] = bytes(396)
    path.write_bytes(bytes(stored))
    with pytest.raises(InputError, match=r"Row group 0 of .*b\.parquet can't be read"):
        _stream(folder)
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"b\.parquet can't be read as Parquet"):
        _stream(folder)


def test_errors_say_what_to_do(table, tmp_path, monkeypatch):
    frame, folder = table
    for settings, words in {
        "no column 'prize'. There are: 'size'": {"target": "prize"},
        "asked for by name": {"target": 3},
        "target 'age' has gaps": {"target": "age"},
        "target 'place' is text": {"target": "place"},
    }.items():
        with pytest.raises(InputError, match=settings):
            _stream(folder, **words)
    frame["id"] = [f"row {i}" for i in range(N)]
    frame[:25].to_parquet(tmp_path / "id.parquet")
    with pytest.raises(InputError, match="text with 25 different values in 25 rows"):
        _stream(tmp_path / "id.parquet")
    frame.to_parquet(folder / "c.parquet")
    with pytest.raises(InputError, match=r"c\.parquet has other columns than"):
        _stream(folder)
    pd.DataFrame({"a": [[1], [2]], "price": [1.0, 2.0]}).to_parquet(tmp_path / "lists.parquet")
    with pytest.raises(InputTypeError, match=r"The column 'a' holds values of type list.*Leave it out"):
        _stream(tmp_path / "lists.parquet", batch_size=1)
    pd.DataFrame({"a": [1.0, np.inf], "price": [1.0, 2.0]}).to_parquet(tmp_path / "inf.parquet")
    with pytest.raises(InputError, match="'a' has inf in 1 of 2 rows"):
        _stream(tmp_path / "inf.parquet", batch_size=1)
    with pytest.raises(MissingDataError, match="nothing at"):
        _stream(tmp_path / "nowhere.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDataError, match=r"pip install dgpax\[streams\]"):
        _stream(tmp_path / "inf.parquet")


@pytest.mark.parametrize("number", [1, 2, 7, 1000])
def test_the_median_of_any_number_of_rows_is_exact(number):
    values = np.concatenate([RNG.normal(size=number) * 10.0 ** RNG.integers(-300, 300, number), [-0.0, 3.0, 3.0]])
    values = np.concatenate([values, -values[: number // 2]])
    gappy = np.where(RNG.random(len(values)) < 0.1, np.nan, values)
    gappy[0] = values[0]
    for dtype in (np.float64, np.float32):
        column = np.clip(gappy, -1e38, 1e38).astype(dtype)
        expected = np.median(column[~np.isnan(column)].astype(float))
        assert exact_median(lambda c=column: iter(np.array_split(c, 3))) == expected


def test_predictions_take_the_encoding(table):
    frame, folder = table
    feed = _stream(folder)
    engine = dgpax.inference.Gradient(max_steps=1)
    fitted = dgpax.fit(dgpax.deep_gp(feed, 1, 4), feed, "variational", engine=engine, progress=False)
    assert feed.encoding is not None
    assert dgpax.predict(fitted, feed.encoding.apply(frame.drop(columns="price"))).mean.shape == (N, 1)
