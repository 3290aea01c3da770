"""Checking, scaling and minibatches. The numbers in comments are the cases of the adversarial-input suite."""

from __future__ import annotations

import warnings
from functools import partial

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
from numpy.testing import assert_allclose, assert_array_equal

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
        (X[:0], InputError, r"0 sample\(s\) in x \(shape=\(0, 3\)\) while a minimum of 1 is required"),  # 12
        (X[:, :0], InputError, r"0 feature\(s\) in x \(shape=\(4, 0\)\) while a minimum of 1 is required"),
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


# Scaling: 7-10, 16-18


def reference_scaling(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    wide = values.astype(np.longdouble)
    return np.nanmean(wide, axis=0).astype(float), np.nanstd(wide, axis=0).astype(float)


def test_standardise_matches_numpy(rng):
    x, y = 3.0 + 2.0 * rng.normal(size=(101, 4)), rng.exponential(size=(101, 2))
    data = dd.dataset(x, y)
    scaling = dd.standardise(data)
    scaled = scaling.dataset(data)
    for values, result in ((x, scaled.x), (y, scaled.y)):
        mean, deviation = reference_scaling(values)
        assert_allclose(result, (values - mean) / deviation, rtol=0, atol=1e-14)
    assert not scaling.x_constant.any()


def test_scaling_is_inverted(rng):
    y = 5.0 + 3.0 * rng.normal(size=(30, 2))
    data = dd.dataset(rng.normal(size=(30, 1)), y)
    scaling = dd.standardise(data)
    scaled = scaling.outputs(data.y)
    samples = jnp.stack([scaled, scaled])
    assert_allclose(scaling.invert_outputs(samples), np.stack([y, y]), rtol=1e-14)
    assert_allclose(scaling.invert_mean(scaled), y, rtol=1e-14)
    variance = jnp.full((30, 2), 0.25)
    assert_allclose(scaling.invert_variance(variance), 0.25 * np.var(y, axis=0) * np.ones((30, 1)), rtol=1e-12)
    assert_allclose(scaling.invert_deviation(jnp.sqrt(variance)) ** 2, scaling.invert_variance(variance), rtol=1e-14)


def test_log_jacobian_turns_scaled_densities_into_densities(rng):
    y = 5.0 + 3.0 * rng.normal(size=(30, 1))
    scaling = dd.standardise(dd.dataset(rng.normal(size=(30, 1)), y))
    scaled = scipy.stats.norm.logpdf(np.asarray(scaling.outputs(jnp.asarray(y)))) + np.asarray(scaling.log_jacobian)
    assert_allclose(scaled, scipy.stats.norm.logpdf(y, np.mean(y), np.std(y)), rtol=1e-13)


def test_missing_outputs_do_not_count():
    y = np.array([[1.0, 5.0], [3.0, NAN], [NAN, 9.0], [5.0, 7.0]])
    data = dd.dataset(X, y, missing="keep_outputs")
    scaling = dd.standardise(data)
    assert_allclose(scaling.y_mean, [3.0, 7.0], rtol=1e-14)
    assert_allclose(scaling.y_scale, np.std([[1, 5], [3, 9], [5, 7]], axis=0), rtol=1e-14)
    assert_array_equal(np.isnan(scaling.dataset(data).y), np.isnan(y))


@pytest.mark.parametrize("constant", [0.0, 0.1, -288.15, 1e-300, 1e300])
def test_constant_inputs_become_exactly_zero(constant, rng):
    x = rng.normal(size=(1001, 3))
    x[:, 1] = constant
    data = dd.dataset(x, x[:, 0])
    scaling = dd.standardise(data)
    assert_array_equal(scaling.x_constant, [False, True, False])
    assert dd.constant_columns(scaling, ("a", "b", "c")) == ("b",)
    assert dd.constant_columns(scaling) == ("x1",)
    elsewhere = scaling.inputs(jnp.asarray(with_entry(x, (0, 1), 123.0)))
    assert_array_equal(elsewhere[:, 1], 0.0)
    assert_allclose(elsewhere[:, 0], (x[:, 0] - np.mean(x[:, 0])) / np.std(x[:, 0]), atol=1e-14)


@pytest.mark.parametrize("constant", [0.0, 0.1, -3.7e10])
def test_constant_outputs_are_centred_exactly(constant):
    data = dd.dataset(np.arange(77.0)[:, None], np.full(77, constant))
    scaling = dd.standardise(data)
    assert_array_equal(scaling.outputs(data.y), 0.0)
    assert_array_equal(scaling.y_scale, 1.0)
    assert_array_equal(scaling.invert_mean(jnp.zeros((2, 1))), constant)


def test_one_row_is_constant():  # 11
    data = dd.dataset([[3.0, 4.0]], [5.0])
    scaled = dd.standardise(data).dataset(data)
    assert_array_equal(scaled.x, [[0.0, 0.0]])
    assert_array_equal(scaled.y, [[0.0]])


@pytest.mark.parametrize("shift", [0.0, 1e8])
def test_offsets_and_units_do_not_matter(shift, rng):
    base = rng.uniform(size=(500, 1)) + shift
    x = base * np.array([1.0, 1e-12, 1e12, 1e-200, 1e200])
    data = dd.dataset(x, x)
    scaling = dd.standardise(data)
    mean, deviation = reference_scaling(base)
    scaled = scaling.dataset(data)
    tolerance = 1e-12 if shift == 0.0 else 1e-6
    for result in (scaled.x, scaled.y):
        assert_allclose(result, np.broadcast_to((base - mean) / deviation, x.shape), rtol=0, atol=tolerance)
    assert not scaling.x_constant.any()
    assert np.all(np.isfinite(scaling.log_jacobian))
    assert_allclose(scaling.invert_deviation(jnp.ones((1, 5))), [deviation * x[0] / base[0]], rtol=tolerance)


def test_float32_statistics_are_accurate(rng):
    x = (1000.0 + rng.normal(size=(5000, 2))).astype(np.float32)
    data = dd.dataset(x, x)
    mean, deviation = reference_scaling(x)
    scaled = dd.standardise(data).dataset(data)
    assert_allclose(scaled.x, (x - mean) / deviation, rtol=1e-6, atol=1e-6)


def test_identity_scaling_and_inputs_only(rng):
    data = dd.dataset(rng.normal(size=(20, 2)).astype(np.float32), (rng.uniform(size=20) < 0.5).astype(np.float32))
    same = dd.identity_scaling(2, 1).dataset(data)
    assert_array_equal(same.x, data.x)
    assert_array_equal(same.y, data.y)
    assert same.x.dtype == jnp.float32
    scaling = dd.standardise_inputs(data)
    assert_array_equal(scaling.outputs(data.y), data.y)
    assert_array_equal(scaling.x_scale, dd.standardise(data).x_scale)
    assert_array_equal(scaling.log_jacobian, 0.0)


def test_scaling_survives_jit_and_vmap(rng):
    x, y = rng.normal(size=(3, 10, 2)), rng.normal(size=(3, 10, 1))
    stacked = jax.vmap(lambda x, y: dd.standardise(dd.Dataset(x, y)).dataset(dd.Dataset(x, y)).x)(x, y)
    for index in range(3):
        data = dd.dataset(x[index], y[index])
        assert_allclose(stacked[index], dd.standardise(data).inputs(data.x), rtol=1e-12, atol=1e-14)


# Minibatches


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
