"""Inputs that are constant, collinear, many, or in awful units: cases 7, 8, 15 to 17, 23 and 30."""

from __future__ import annotations

import resource

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dgpax
from adversarial.support import (
    BOTH,
    ENGINE,
    NEW_X,
    assert_finite,
    difference,
    model_for,
    noise_deviation,
    smooth,
    table,
    train,
    value,
)
from dgpax.errors import DgpaxWarning
from dgpax.inference import LBFGS

GIB_IN_KIB = 2**20


def one_column() -> tuple[np.ndarray, np.ndarray]:
    x, _ = table()
    return x[:, :1], smooth(x[:, :1]) + 0.1 * np.random.default_rng(3).normal(size=len(x))


@pytest.mark.slow
@pytest.mark.parametrize("inference", BOTH)
def test_case_07_constant_column_is_named_and_changes_nothing(inference):
    x, y = one_column()
    data = dgpax.dataset(np.hstack([x, np.full_like(x, 273.15)]), y)
    with pytest.warns(DgpaxWarning, match="Constant columns have no influence: x1"):
        fitted = train(inference, data, train_points=False)
    without = train(inference, dgpax.dataset(x, y), train_points=False)
    assert fitted.report.constant_columns == ("x1",)
    starts = [value(dgpax.gp_regression(d), "*.lengthscale")[0] for d in (data, dgpax.dataset(x, y))]
    assert starts[0] == starts[1]
    assert difference(fitted, without, NEW_X, NEW_X[:, :1]) < 1e-8
    assert_finite(fitted, data)


@pytest.mark.parametrize("inference", BOTH)
def test_case_08_all_columns_constant_predicts_mean_and_deviation_of_y(inference):
    _, y = table()
    data = dgpax.dataset(np.tile([[0.0, 1e5]], (len(y), 1)), y)
    if inference == "sparse":
        with pytest.warns(DgpaxWarning, match="1 distinct rows"):
            model = model_for(inference, data, train_points=False)
    else:
        model = model_for(inference, data)
    with pytest.warns(DgpaxWarning, match="Constant columns have no influence: x0, x1"):
        fitted = dgpax.fit(model, data, inference, engine=ENGINE)
    prediction = dgpax.predict(fitted, NEW_X)
    assert_allclose(prediction.mean, np.mean(y), atol=0.01 * float(np.std(y)))
    assert_allclose(prediction.stddev, np.std(y), rtol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("inference", BOTH)
def test_case_15_a_thousand_columns_and_fifty_rows(inference):
    rng = np.random.default_rng(4)
    x, new = rng.normal(size=(50, 1000)), rng.normal(size=(6, 1000))
    data = dgpax.dataset(x, smooth(x))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = model_for(inference, data, train_points=False)
    fitted = dgpax.fit(model, data, inference, engine=LBFGS(max_steps=20))
    assert_finite(fitted, data, new)
    assert fitted.report.objective_end > fitted.report.objective_start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert peak - before < 2 * GIB_IN_KIB
    y = np.asarray(data.y)
    print(
        "c15",
        inference,
        (peak - before) / GIB_IN_KIB,
        np.abs(dgpax.predict(fitted, new).mean - y.mean()).max() / y.std(),
    )
    assert np.all(np.abs(dgpax.predict(fitted, new).mean - y.mean()) < y.std())
    assert np.all(np.isfinite(dgpax.predict(fitted, 1e150 * new).stddev))


@pytest.mark.parametrize("inference", BOTH)
def test_case_16_shifted_inputs(inference):
    x, y = table()
    fitted, shifted = train(inference, dgpax.dataset(x, y)), train(inference, dgpax.dataset(x + 1e8, y))
    assert difference(fitted, shifted, NEW_X, NEW_X + 1e8) < 1e-5


@pytest.mark.parametrize("inference", BOTH)
def test_case_17_columns_in_extreme_units(inference):
    x, y = table()
    units = np.array([1e-12, 1e12])
    fitted, scaled = train(inference, dgpax.dataset(x, y)), train(inference, dgpax.dataset(units * x, y))
    assert difference(fitted, scaled, NEW_X, units * NEW_X) < 1e-6


@pytest.mark.parametrize("inference", BOTH)
def test_case_23_ten_copies_of_a_column_are_one(inference):
    x, y = one_column()
    data = dgpax.dataset(np.tile(x, (1, 10)), y)
    one, ten = train(inference, dgpax.dataset(x, y), train_points=False), train(inference, data, train_points=False)
    new, copies = NEW_X[:, :1], np.tile(NEW_X[:, :1], (1, 10))
    assert difference(one, ten, new, copies) < 1e-3 * np.min(dgpax.predict(one, new).stddev)
    assert_finite(ten, data, copies)


@pytest.mark.parametrize("distance", [1e6, 1e300])
@pytest.mark.parametrize("inference", BOTH)
def test_case_30_extrapolation_returns_to_the_prior(inference, distance):
    x, y = table()
    fitted = train(inference, dgpax.dataset(x, y))
    lengthscales = value(fitted.model, "*.lengthscale") * np.std(x, axis=0)
    prediction = dgpax.predict(fitted, NEW_X + distance * lengthscales)
    prior_deviation = np.sqrt(value(fitted.model, "*.kernel.variance")) * np.std(y)
    assert_allclose(prediction.mean, np.mean(y), rtol=1e-12)
    assert_allclose(prediction.stddev, np.hypot(prior_deviation, noise_deviation(fitted, y)), rtol=1e-12)
