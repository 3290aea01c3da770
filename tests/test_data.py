"""Checking what comes in. The numbers in comments are the cases of the adversarial-input suite."""

from __future__ import annotations

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import scipy.stats
from numpy.testing import assert_array_equal

import dgpax.data as dd
from dgpax.errors import DgpaxWarning, InputError, InputTypeError, UnknownNameError

X = np.array([[0.5, 1.0, -2.0], [1.5, 3.0, 0.25], [-1.0, 0.0, 7.0], [2.0, 4.0, 1.0]])
Y = np.array([1.0, -1.0, 0.5, 2.0])
NAN, INF = np.nan, np.inf


def with_entry(array: np.ndarray, index: tuple[int, ...], value: float) -> np.ndarray:
    changed = array.copy()
    changed[index] = value
    return changed


# Dataset


def test_dataset_has_rows_inputs_and_outputs():
    data = dd.dataset(X, Y)
    assert (data.num_rows, data.num_inputs, data.num_outputs) == (4, 3, 1)
    assert data.scale == 1.0 and data.input_names == () and data.output_names == ()
    assert_array_equal(data.x, X)
    assert_array_equal(data.y, Y[:, None])


def test_dataset_is_a_pytree_that_can_be_built_inside_jit():
    @eqx.filter_jit
    def double(data: dd.Dataset) -> dd.Dataset:
        return dd.Dataset(2.0 * data.x, data.y, scale=data.scale, input_names=data.input_names)

    data = dd.dataset(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
    doubled = double(data)
    assert_array_equal(doubled.x, 2.0 * X)
    assert doubled.input_names == ("a", "b", "c")
    assert_array_equal(jax.jit(lambda d: d.take(jnp.array([2, 0])).y)(data), Y[[2, 0], None])


def test_dataset_does_not_see_later_changes_of_the_users_array():
    x, y = X.copy(), Y.copy()
    data = dd.dataset(x, y)
    x[:] = 0.0
    y[:] = 0.0
    assert_array_equal(data.x, X)
    assert_array_equal(data.y, Y[:, None])


def test_dataset_refuses_to_run_inside_jit():
    with pytest.raises(InputTypeError, match="inside jit"):
        jax.jit(lambda x: dd.dataset(x, Y).x)(X)


# dtypes and memory layouts: 26, 27


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, bool, np.float16, np.longdouble, ">i4", jnp.bfloat16])
def test_numbers_are_cast_to_the_default_float(dtype):
    x = np.array([[0, 1], [1, 1], [1, 0]]).astype(dtype)
    data = dd.dataset(x, x[:, 0])
    assert data.x.dtype == data.y.dtype == jnp.float64
    assert_array_equal(data.x, [[0, 1], [1, 1], [1, 0]])


@pytest.mark.parametrize("convert", [np.asarray, jnp.asarray, lambda a: a.astype(">f4"), pd.DataFrame, pl.DataFrame])
def test_float32_stays_float32(convert):
    data = dd.dataset(convert(X.astype(np.float32)), Y.astype(np.float32))
    assert data.x.dtype == data.y.dtype == jnp.float32
    scaled = dd.standardise(data).dataset(data)
    assert scaled.x.dtype == scaled.y.dtype == jnp.float32
    assert dd.minibatch(data, jr.key(0), 0, 2).x.dtype == jnp.float32


def test_memory_layout_does_not_matter(tmp_path, rng):
    x, y = rng.normal(size=(57, 5)), rng.normal(size=57)
    np.save(tmp_path / "x.npy", x)
    wide = np.zeros((114, 10))
    wide[::2, ::2] = x
    variants = {
        "list": x.tolist(),
        "jax": jnp.asarray(x),
        "read-only memmap": np.load(tmp_path / "x.npy", mmap_mode="r"),
        "Fortran": np.asfortranarray(x),
        "non-contiguous": wide[::2, ::2],
        "reversed": x[::-1][::-1],
        "big-endian": x.astype(">f8"),
        "pandas": pd.DataFrame(x),
        "polars": pl.DataFrame(x),
    }
    reference = dd.dataset(x, y)
    scaling = dd.standardise(reference)
    for name, variant in variants.items():
        data = dd.dataset(variant, y)
        assert_array_equal(data.x, reference.x, err_msg=name)
        assert_array_equal(dd.standardise(data).x_mean, scaling.x_mean, err_msg=name)
        assert_array_equal(dd.standardise(data).x_scale, scaling.x_scale, err_msg=name)


def test_masked_entries_are_missing():
    x = np.ma.masked_equal(np.array([[1, 2], [3, -9]]), -9)
    with pytest.raises(InputError, match="x has NaN in 1 of 2 rows, in column 1"):
        dd.dataset(x, [0.0, 1.0])


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (X.astype(object), InputError, r"objects.*astype\(float\).*x has dtype object"),
        (X.astype(complex), InputError, "Complex data not supported.*complex128"),
        (X.astype(str), InputTypeError, "Text.*one-hot"),
        (X.astype(bytes), InputTypeError, "Text"),
        (X.astype(int).astype("M8[s]"), InputTypeError, "Times"),
        (X.astype(int).astype("m8[s]"), InputTypeError, "Durations"),
        (np.zeros(4, dtype=[("a", float)]), InputTypeError, "Real numbers"),
        (jr.split(jr.key(0), (4, 3)), InputTypeError, "Real numbers"),
        (scipy.sparse.csr_array(X), InputTypeError, r"sparse.*x\.toarray\(\)"),
        ([[1.0], [1.0, 2.0]], InputError, "same length"),
        (None, InputError, "dtype object"),
        (X[:, 0], InputError, r"Reshape your data.*x\.reshape\(-1, 1\)"),  # 14
        (3.0, InputError, r"got shape \(\)"),
        (np.zeros((4, 28, 28)), InputError, r"got shape \(4, 28, 28\).*reshape"),
        (X[:0], InputError, r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),  # 12
        (X[:, :0], InputError, r"0 feature\(s\) \(shape=\(4, 0\)\) while a minimum of 1 is required"),
        (X[:3], InputError, "x has 3, y has 4"),
        (with_entry(X, (1, 2), INF), InputError, "x has inf in 1 of 4 rows, in column 2"),  # 25
        (with_entry(with_entry(X, (1, 2), NAN), (0, 0), NAN), InputError, "x has NaN in 2 of 4 rows, in columns 0, 2"),
    ],
)
def test_bad_inputs(x, error, message):
    with pytest.raises(error, match=message):
        dd.dataset(x, Y)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (np.array(["a", "b", "c", "d"]), InputTypeError, "Text.*y has dtype"),
        (np.zeros((4, 0)), InputError, r"0 output\(s\)"),
        (np.zeros((4, 1, 1)), InputError, r"got shape \(4, 1, 1\)"),
        (2.0, InputError, r"got shape \(\)"),
        (with_entry(Y, (2,), -INF), InputError, "y has inf in 1 of 4 rows"),
        (with_entry(Y, (2,), NAN), InputError, "y has NaN in 1 of 4 rows, in column 0.*missing='drop'"),  # 24
    ],
)
def test_bad_outputs(y, error, message):
    with pytest.raises(error, match=message):
        dd.dataset(X, y)


def test_large_finite_values_whose_sum_overflows_are_accepted():
    assert dd.dataset([[1e308], [1e308]], [1e308, 1e308]).num_rows == 2


def test_long_lists_of_bad_columns_are_cut():
    with pytest.raises(InputError, match=r"columns 0, 1, .*9, … \(30 in all\)"):
        dd.dataset(np.full((2, 30), NAN), [0.0, 1.0])


# Missing values: 24


def test_drop_leaves_out_incomplete_rows_and_warns():
    x, y = with_entry(X, (1, 2), NAN), with_entry(Y, (3,), NAN)
    with pytest.warns(DgpaxWarning, match="Dropped 2 of 4 rows"):
        data = dd.dataset(jnp.asarray(x), y, missing="drop")
    assert_array_equal(data.x, X[[0, 2]])
    assert_array_equal(data.y, Y[[0, 2], None])


def test_drop_is_silent_when_nothing_is_missing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dd.dataset(X, Y, missing="drop").num_rows == 4


def test_drop_of_all_rows_is_an_error():
    with pytest.raises(InputError, match=r"0 sample\(s\)"):
        dd.dataset(np.full_like(X, NAN), Y, missing="drop")


def test_drop_does_not_drop_infinite_values():
    with pytest.raises(InputError, match="inf"):
        dd.dataset(with_entry(X, (0, 0), INF), with_entry(Y, (1,), NAN), missing="drop")


def test_keep_outputs_keeps_rows_with_some_output():
    y = with_entry(np.stack([Y, Y], axis=1), (2, 1), NAN)
    data = dd.dataset(X, y, missing="keep_outputs")
    assert_array_equal(data.y, y)
    with pytest.raises(InputError, match=r"y has NaN in 1 of 4 rows, in column 1.*keep_outputs"):
        dd.dataset(X, y)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (with_entry(X, (0, 1), NAN), np.stack([Y, Y], axis=1), "x has NaN in 1 of 4 rows, in column 1"),
        (X, with_entry(Y, (1,), NAN), "1 of 4 rows have no output at all"),
        (X, np.stack([Y, np.full(4, NAN)], axis=1), "no value at all in column 1"),
    ],
)
def test_keep_outputs_refuses(x, y, message):
    with pytest.raises(InputError, match=message):
        dd.dataset(x, y, missing="keep_outputs")


def test_unknown_policy_lists_those_there_are():
    with pytest.raises(UnknownNameError, match="error, drop, keep_outputs"):
        dd.dataset(X, Y, missing="ignore")


# Frames: 28, 29

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
SERIES = {"pandas": pd.Series, "polars": pl.Series}


@pytest.mark.parametrize("library", FRAMES)
def test_frames_keep_names_and_values(library):
    x = FRAMES[library]({"a": [1, 2, 3], "b": [True, False, True], "c": [0.5, 1.5, 2.5]})
    y = FRAMES[library]({"u": [1.0, 2.0, 3.0], "v": [1, 2, 3]})
    data = dd.dataset(x, y)
    assert data.input_names == ("a", "b", "c") and data.output_names == ("u", "v")
    assert data.x.dtype == jnp.float64
    assert_array_equal(data.x, [[1, 1, 0.5], [2, 0, 1.5], [3, 1, 2.5]])
    assert_array_equal(data.y, [[1, 1], [2, 2], [3, 3]])


@pytest.mark.parametrize("library", SERIES)
def test_series_are_outputs(library):
    series = SERIES[library]
    named = series(name="price", data=Y) if library == "pandas" else series("price", Y)
    assert dd.dataset(X, named).output_names == ("price",)
    assert dd.dataset(X, series(Y)).output_names == ()
    assert_array_equal(dd.dataset(X, named).y, Y[:, None])
    with pytest.raises(InputError, match=r"to_frame\(\)"):
        dd.dataset(named, Y)


def test_nulls_of_frames_are_missing():
    frames = [
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": pd.array([True, True], dtype="boolean")}),
        pd.DataFrame({"a": pd.array([1.0, None], dtype="Float32"), "b": [1.0, 2.0]}),
        pl.DataFrame({"a": [1, None], "b": [True, True]}),
        pl.DataFrame({"a": [True, None], "b": [1.0, 2.0]}),
    ]
    for frame in frames:
        with pytest.raises(InputError, match="x has NaN in 1 of 2 rows, in column 'a'"):
            dd.dataset(frame, [0.0, 1.0])


def test_frames_with_text_categories_and_times_name_the_columns():
    columns = {"age": [1.0, 2.0], "city": ["a", "b"], "when": np.array(["2020-01-01", "2020-01-02"], "M8[ns]")}
    pandas = pd.DataFrame(columns).assign(kind=pd.Categorical(["p", "q"]), thing=pd.Series([1, "x"], dtype=object))
    polars = pl.DataFrame(columns).with_columns(kind=pl.Series(["p", "q"], dtype=pl.Categorical), thing=[[1], [2]])
    for frame in (pandas, polars):
        with pytest.raises(InputTypeError, match=r"'city' .*'when' .*'kind' .*'thing' .*one-hot") as caught:
            dd.dataset(frame, [0.0, 1.0])
        assert "'age'" not in str(caught.value)


def test_frames_that_cannot_be_used():
    with pytest.raises(InputTypeError, match=r"LazyFrame.*\.collect\(\)"):
        dd.dataset(pl.DataFrame(X).lazy(), Y)
    with pytest.raises(InputError, match="same name: 'a'"):
        dd.dataset(pd.DataFrame(X, columns=["a", "b", "a"]), Y)
    with pytest.raises(InputError, match=r"0 feature\(s\)"):
        dd.dataset(pd.DataFrame(index=range(4)), Y)
    with pytest.raises(InputError, match=r"0 sample\(s\)"):
        dd.dataset(pl.DataFrame({"a": []}, schema={"a": pl.Float64}), Y)


def test_columns_without_text_names_are_nameless():
    assert dd.dataset(pd.DataFrame(X), Y).input_names == ()
    assert dd.dataset(pd.DataFrame(X, columns=[0, "b", "c"]), Y).input_names == ()


@pytest.mark.parametrize("library", FRAMES)
def test_frames_are_reordered_at_prediction(library):
    frame = FRAMES[library](dict(zip("abc", X.T, strict=True)))
    shuffled = frame[["c", "a", "b"]]
    assert_array_equal(dd.check_inputs(shuffled, 3, ("a", "b", "c")), X)
    with pytest.raises(InputError, match="missing: 'd'; unexpected: 'c'"):
        dd.check_inputs(shuffled, 3, ("a", "b", "d"))
    with pytest.raises(InputError, match=r"unexpected: 'c'\. "):
        dd.check_inputs(shuffled, 2, ("a", "b"))
    assert_array_equal(dd.check_inputs(shuffled, 3), X[:, [2, 0, 1]])


def test_an_unexpected_text_column_is_called_unexpected():
    with pytest.raises(InputError, match="unexpected: 'note'"):
        dd.check_inputs(pd.DataFrame({"a": [1.0], "note": ["x"]}), 1, ("a",))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (X[:, :2], "x has 2 features, but the model is expecting 3 features"),
        (X[0], "Reshape your data"),
        (X[:0], r"0 sample\(s\)"),
        (with_entry(X, (0, 0), NAN), "x has NaN in 1 of 4 rows"),
        (with_entry(X, (0, 0), INF), "x has inf in 1 of 4 rows"),
    ],
)
def test_bad_inputs_at_prediction(x, message):
    with pytest.raises(InputError, match=message):
        dd.check_inputs(x, 3)


def test_inputs_can_be_differentiated_through():
    slope = jax.grad(lambda x: jnp.sum(dd.check_inputs(x, 3, ("a", "b", "c")) ** 2))(jnp.asarray(X))
    assert_array_equal(slope, 2.0 * X)
