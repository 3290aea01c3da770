"""Standardisation, and back."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal

import dgpax.data as dd

X = np.array([[0.5, 1.0, -2.0], [1.5, 3.0, 0.25], [-1.0, 0.0, 7.0], [2.0, 4.0, 1.0]])
NAN = np.nan


def with_entry(array: np.ndarray, index: tuple[int, ...], value: float) -> np.ndarray:
    changed = array.copy()
    changed[index] = value
    return changed


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
