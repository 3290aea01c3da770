"""Targets that are constant, huge, tiny, noise-free, all noise, or full of outliers: cases 9, 10 and 18 to 22."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dgpax
from adversarial.support import (
    BOTH,
    ENGINE,
    NEW_X,
    ROWS,
    assert_finite,
    assert_finite_gradient,
    model_for,
    smooth,
    table,
    train,
)
from dgpax import Dataset, DeepGP, Fit
from dgpax.data import standardise_inputs
from dgpax.errors import DgpaxWarning
from dgpax.inference import NaturalGradient
from dgpax.kernels import RBF
from dgpax.likelihoods import GaussianNoise, StudentT
from dgpax.parameters import Positive


def predictions_of_constant(inference: str, constant: float):
    x, _ = table()
    data = dgpax.dataset(x, np.full(ROWS, constant))
    fitted = train(inference, data)
    assert_finite(fitted, data)
    assert_finite_gradient(inference, fitted, data)
    return dgpax.predict(fitted, NEW_X)


@pytest.mark.parametrize("constant", [5.0, 0.3, -3.7e10])
@pytest.mark.parametrize("inference", BOTH)
def test_case_09_constant_y(inference, constant):
    prediction = predictions_of_constant(inference, constant)
    assert np.all(np.asarray(prediction.mean) == constant)
    assert np.all(np.asarray(prediction.stddev) <= 1e-3 * max(1.0, abs(constant)))


@pytest.mark.parametrize("inference", BOTH)
def test_case_10_y_is_zero(inference):
    prediction = predictions_of_constant(inference, 0.0)
    assert np.all(np.asarray(prediction.mean) == 0.0)
    assert np.all(np.asarray(prediction.stddev) <= 1e-3)


@pytest.mark.parametrize("unit", [1e-200, 1e200])
@pytest.mark.parametrize("inference", BOTH)
def test_case_18_y_in_extreme_units(inference, unit):
    """The variance of such a y is no float64; means, deviations, quantiles and log densities are."""
    x, y = table()
    base = dgpax.predict(train(inference, dgpax.dataset(x, y)), NEW_X)
    scaled = dgpax.predict(train(inference, dgpax.dataset(x, unit * y)), NEW_X)
    new_y = smooth(NEW_X)[:, None]
    assert_allclose(scaled.mean / unit, base.mean, atol=1e-6)
    assert_allclose(scaled.stddev / unit, base.stddev, atol=1e-6)
    assert_allclose(np.array(scaled.interval(0.9)) / unit, np.array(base.interval(0.9)), atol=1e-6)
    assert_allclose(scaled.log_prob(unit * new_y) + np.log(unit), base.log_prob(new_y), atol=1e-5)


def with_noise_fixed_at(model: DeepGP, noise_variance: float) -> DeepGP:
    noise = Positive(noise_variance, floor=0.0, trainable=False)
    return DeepGP(model.layers, GaussianNoise(noise), model.scaling)


@pytest.mark.parametrize("inference", BOTH)
def test_case_19_fixed_tiny_noise_interpolates(inference):
    x, y = table(noise=0.0)
    data = dgpax.dataset(x, y)
    model = dgpax.gp_regression(data)
    if inference == "sparse":
        model = dgpax.sparse_gp_regression(data, ROWS, train_points=False)
    fitted = dgpax.fit(with_noise_fixed_at(model, 1e-10), data, inference, engine=ENGINE)
    assert_allclose(dgpax.predict(fitted, x[::7]).mean[:, 0], y[::7], atol=1e-4)
    assert fitted.report.largest_jitter < 1e-9
    assert fitted.report.objective_end > fitted.report.objective_start
    assert_finite(fitted, data)


def test_case_19_jitter_is_reported():
    """Exact regression adds none unless it must: at a noise variance of 1e-10 it needn't, at 1e-20 it must."""
    data = dgpax.dataset(*table(noise=0.0))
    model = dgpax.freeze(dgpax.gp_regression(data, RBF(10.0)))
    jitters = [dgpax.fit(with_noise_fixed_at(model, noise), data).report.largest_jitter for noise in (1e-10, 1e-20)]
    assert jitters[0] == 0.0 < jitters[1] < 1e-9


@pytest.mark.parametrize("inference", BOTH)
def test_case_20_a_million_times_more_noise_than_signal(inference):
    """Every row is there twice with opposite errors, so that noise can't look like a signal by chance."""
    x, errors = table(noise=1e6)
    half = ROWS // 2
    x[half:], errors[half:] = x[:half], -errors[:half]
    y = smooth(x) + errors
    data = dgpax.dataset(x, y)
    fitted = train(inference, data)
    prediction = dgpax.predict(fitted, NEW_X)
    assert_allclose(prediction.mean, np.mean(y), atol=1e-3 * float(np.std(y)))
    assert_allclose(prediction.stddev, np.std(y), rtol=0.1)
    assert_finite(fitted, data)
    assert_finite_gradient(inference, fitted, data)


def with_an_outlier() -> Dataset:
    x, y = table()
    y[7] += 1e6 * np.std(y)
    return dgpax.dataset(x, y)


@pytest.mark.parametrize("inference", BOTH)
def test_case_21_outliers_are_reported(inference):
    data = with_an_outlier()
    with pytest.warns(DgpaxWarning, match=r"1 of 40 targets lie more than 1000 .*StudentT"):
        fitted = train(inference, data)
    assert any("StudentT" in note for note in fitted.report.notes)
    assert_finite(fitted, data)
    assert_finite_gradient(inference, fitted, data)


@pytest.mark.slow
def test_case_21_student_t_noise_ignores_outliers():
    """The targets keep their own units: the deviation by which `standardise` would divide them is the outlier's."""
    data = with_an_outlier()
    model = DeepGP(model_for("sparse", data).layers, StudentT(0.3), standardise_inputs(data))
    robust = dgpax.fit(model, data, "variational", engine=NaturalGradient(max_steps=500))
    clean = train("sparse", dgpax.dataset(*table()))
    assert median_error(robust) <= 2.0 * median_error(clean)


def median_error(fitted: Fit) -> float:
    return float(np.median(np.abs(dgpax.predict_latent(fitted, NEW_X).mean[:, 0] - smooth(NEW_X))))


@pytest.mark.parametrize("inference", BOTH)
def test_case_22_heavy_tails(inference):
    x, _ = table()
    data = dgpax.dataset(x, np.random.default_rng(5).standard_cauchy(ROWS))
    fitted = train(inference, data)
    assert fitted.report.rejected_steps == 0
    assert_finite(fitted, data)
    assert_finite_gradient(inference, fitted, data)
