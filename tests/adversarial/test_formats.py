"""Values and containers as users have them: cases 24 to 29."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

import dgpax
from adversarial.support import BOTH, NEW_X, ROWS, condition, table, train
from dgpax.errors import DgpaxWarning


def spoilt(array: np.ndarray, value: float, rows: int = 3) -> np.ndarray:
    """The first rows have a bad value (in the last column)."""
    array = array.copy()
    array[:rows, ..., -1:] = value
    return array


def moments(fitted, x=NEW_X) -> np.ndarray:
    prediction = dgpax.predict(fitted, x)
    return np.stack([prediction.mean, prediction.stddev])


def test_case_24_nan_is_refused_with_counts():
    x, y = table()
    with pytest.raises(ValueError, match="x has NaN in 3 of 40 rows, in column 1"):
        dgpax.dataset(spoilt(x, np.nan), y)
    with pytest.raises(ValueError, match="y has NaN in 3 of 40 rows"):
        dgpax.dataset(x, np.where(np.arange(ROWS) < 3, np.nan, y))


@pytest.mark.parametrize("inference", BOTH)
def test_case_24_nan_is_refused_at_prediction(inference):
    fitted = condition(inference, dgpax.dataset(*table()))
    with pytest.raises(ValueError, match="x has NaN in 2 of 6 rows, in column 1"):
        dgpax.predict(fitted, spoilt(NEW_X, np.nan, rows=2))


@pytest.mark.parametrize("inference", BOTH)
def test_case_24_nan_is_dropped_and_reported_on_request(inference):
    x, y = table()
    extra = spoilt(np.zeros((3, 2)), np.nan)
    with pytest.warns(DgpaxWarning, match="Dropped 3 of 43 rows"):
        data = dgpax.dataset(np.vstack([extra, x]), np.concatenate([np.zeros(3), y]), missing="drop")
    assert_array_equal(moments(train(inference, data)), moments(train(inference, dgpax.dataset(x, y))))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("missing", ["error", "drop", "keep_outputs"])
def test_case_25_infinite_values_are_refused(value, missing):
    x, y = table()
    with pytest.raises(ValueError, match="x has inf in 3 of 40 rows, in column 1"):
        dgpax.dataset(spoilt(x, value), y, missing=missing)
    with pytest.raises(ValueError, match="y has inf in 3 of 40 rows"):
        dgpax.dataset(x, np.where(np.arange(ROWS) < 3, value, y), missing=missing)


@pytest.mark.parametrize("inference", BOTH)
def test_case_25_infinite_values_are_refused_at_prediction(inference):
    fitted = condition(inference, dgpax.dataset(*table()))
    with pytest.raises(ValueError, match="x has inf in 3 of 6 rows"):
        dgpax.predict(fitted, spoilt(NEW_X, np.inf))


@pytest.mark.parametrize(
    ("inference", "dtype"),
    [(inference, dtype) for inference in ("exact", "sparse") for dtype in (int, np.uint8, np.float16)]
    + [("exact", bool)],
)
def test_case_26_numbers_are_cast(inference, dtype):
    """Two columns of booleans have four distinct rows, too few for the inducing points of these tests."""
    x, y = table()
    x, new = np.round(np.abs(x)).astype(dtype), np.round(np.abs(NEW_X)).astype(dtype)
    fitted, same = train(inference, dgpax.dataset(x, y)), train(inference, dgpax.dataset(x.astype(float), y))
    assert_array_equal(moments(fitted, new), moments(same, new.astype(float)))


@pytest.mark.parametrize("dtype", [object, complex])
def test_case_26_objects_and_complex_numbers_are_refused(dtype):
    x, y = table()
    with pytest.raises(ValueError, match="x has dtype"):
        dgpax.dataset(x.astype(dtype), y)
    with pytest.raises(ValueError, match="y has dtype"):
        dgpax.dataset(x, y.astype(dtype))


def read_only_memmap(array: np.ndarray, folder) -> np.ndarray:
    path = folder / f"{array.shape}.npy"
    np.save(path, array)
    return np.load(path, mmap_mode="r")


LAYOUTS = {
    "read-only memmap": read_only_memmap,
    "Fortran order": lambda array, _: np.asfortranarray(array),
    "not contiguous": lambda array, _: np.repeat(array, 2, axis=0)[::2],
    "reversed": lambda array, _: array[::-1].copy()[::-1],
    "big-endian": lambda array, _: array.astype(">f8"),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("inference", BOTH)
def test_case_27_memory_layout_changes_no_bit(inference, layout, tmp_path):
    x, y = table()
    plain = moments(train(inference, dgpax.dataset(x, y)))
    other = train(inference, dgpax.dataset(layout(x, tmp_path), layout(y, tmp_path)))
    assert_array_equal(moments(other, layout(NEW_X, tmp_path)), plain)


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
@pytest.mark.parametrize("inference", BOTH)
def test_case_28_frames_are_arrays_with_names(inference, frame):
    x, y = table()
    fitted = train(inference, dgpax.dataset(frame({"a": x[:, 0], "b": x[:, 1]}), frame({"y": y})))
    assert fitted.input_names == ("a", "b")
    new = frame({"a": NEW_X[:, 0], "b": NEW_X[:, 1]})
    assert_array_equal(moments(fitted, new), moments(train(inference, dgpax.dataset(x, y))))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"age": [1.0, 2.0], "town": ["Graz", "Linz"]}),
        pd.DataFrame({"age": [1.0, 2.0], "town": pd.Categorical(["Graz", "Linz"])}),
        pd.DataFrame({"age": [1.0, 2.0], "town": np.array([{}, []], dtype=object)}),
        pl.DataFrame({"age": [1.0, 2.0], "town": ["Graz", "Linz"]}),
        pl.DataFrame({"age": [1.0, 2.0], "town": pl.Series(["Graz", "Linz"], dtype=pl.Categorical)}),
    ],
    ids=["text", "categories", "objects", "polars text", "polars categories"],
)
def test_case_28_columns_that_are_no_numbers_are_named(frame):
    with pytest.raises(TypeError, match=r"'town'.*one-hot"):
        dgpax.dataset(frame, [1.0, 2.0])


def test_case_28_sparse_matrices_are_refused():
    x, y = table()
    with pytest.raises(TypeError, match=r"sparse.*toarray"):
        dgpax.dataset(scipy.sparse.csr_matrix(x), y)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
@pytest.mark.parametrize("inference", BOTH)
def test_case_29_columns_are_reordered_by_name(inference, frame):
    x, y = table()
    fitted = condition(inference, dgpax.dataset(frame({"a": x[:, 0], "b": x[:, 1]}), y))
    reordered = frame({"b": NEW_X[:, 1], "a": NEW_X[:, 0]})
    assert_array_equal(moments(fitted, reordered), moments(fitted, NEW_X))
    with pytest.raises(ValueError, match="missing: 'b'; unexpected: 'c'"):
        dgpax.predict(fitted, frame({"a": NEW_X[:, 0], "c": NEW_X[:, 1]}))
