"""Estimators: what a user of scikit-learn expects, on a table with text and gaps."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import jax.numpy as jnp
import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

import dgpax
from dgpax import DeepGPClassifier, DeepGPRegressor, DeepGPTransformer
from dgpax.distributions import AbstractDistribution
from dgpax.errors import InputError, InputTypeError, ModelFileError, UnknownNameError
from dgpax.io import REGISTRY
from dgpax.io._estimators import SavedEstimator, as_saved
from dgpax.recipes import Recipe, plan
from dgpax.recipes._inducing import suitable_counts, with_inducing
from dgpax.recipes._rows import Rows, suitable_size
from dgpax.storage import write
from dgpax.stride import Composition, Residual, Stride

N = 50
STEPS = 150


def table(num_rows: int = N, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = pd.DataFrame({"height": rng.uniform(-2, 2, num_rows), "kind": rng.choice(["a", "b"], num_rows)})
    y = np.sin(2 * x["height"].to_numpy()) + (x["kind"] == "b").to_numpy() + 0.1 * rng.normal(size=num_rows)
    x.loc[3, "height"] = np.nan
    return x, 100.0 + 10.0 * y


@pytest.fixture(scope="module")
def regressor() -> DeepGPRegressor:
    return DeepGPRegressor(num_layers=2, max_steps=STEPS).fit(*table())


def test_predictions_have_the_shapes_of_the_targets(regressor):
    x, y = table(20, seed=1)
    mean, stddev = regressor.predict(x, return_std=True)
    assert mean.shape == stddev.shape == (20,) and np.all(stddev > 0)
    assert_array_equal(mean, regressor.predict(x))
    low, high = regressor.predict_interval(x, 0.8).T
    assert np.all((low < mean) & (mean < high))
    assert regressor.score(x, y) > 0.5


@pytest.mark.slow
def test_quantiles_and_covariances(regressor):
    x, _ = table(20, seed=1)
    _, stddev = regressor.predict(x, return_std=True)
    quantiles = regressor.predict_quantiles(x, [0.1, 0.5, 0.9])
    assert quantiles.shape == (20, 3) and np.all(np.diff(quantiles, axis=1) > 0)
    assert_allclose(regressor.predict_interval(x, 0.8), quantiles[:, [0, 2]], rtol=1e-10)
    assert regressor.sample_y(x, 5).shape == (20, 5)
    _, covariance = regressor.predict(x, return_cov=True)
    assert covariance.shape == (20, 20)
    assert_allclose(np.diag(covariance), stddev**2)
    assert np.all(np.linalg.eigvalsh(covariance) > -1e-6 * stddev.max() ** 2)


@pytest.mark.slow
def test_the_distribution_is_the_one_of_the_moments(regressor):
    x, _ = table(20, seed=1)
    distribution = regressor.predict_dist(x)
    assert isinstance(distribution, AbstractDistribution)
    mean, stddev = regressor.predict(x, return_std=True)
    assert_allclose(distribution.mean[:, 0], mean, rtol=1e-10)
    assert_allclose(distribution.stddev[:, 0], stddev, rtol=1e-8)
    assert_allclose(distribution.quantile(0.3)[:, 0], regressor.predict_quantiles(x, 0.3)[:, 0], rtol=1e-8)


@pytest.mark.slow
def test_samples_agree_with_the_moments(regressor):
    """500 draws: means within 4 standard errors, deviations within a fifth."""
    x, _ = table(20, seed=1)
    draws = regressor.sample_y(x, 500, random_state=1)
    mean, stddev = regressor.predict(x, return_std=True)
    assert np.max(np.abs(draws.mean(axis=1) - mean) / stddev) < 6 / np.sqrt(500)
    assert_allclose(draws.std(axis=1), stddev, rtol=0.3)


def test_a_row_is_predicted_whatever_stands_beside_it(regressor):
    x, _ = table(20, seed=1)
    one_by_one = np.concatenate([regressor.predict(x.iloc[[i]]) for i in range(20)])
    assert_allclose(one_by_one, regressor.predict(x), rtol=1e-10)


def test_frames_of_polars_are_the_same(regressor):
    x, _ = table(20, seed=1)
    frame = pl.DataFrame({name: [None if v != v else v for v in x[name].tolist()] for name in x})
    assert_array_equal(regressor.predict(frame), regressor.predict(x))


def test_names_and_words(regressor):
    assert list(regressor.feature_names_in_) == ["height", "kind"] and regressor.n_features_in_ == 2
    assert regressor.encoding_.output_names == ("height", "height missing", "kind=a", "kind=b")
    assert isinstance(regressor.fit_, dgpax.Fit) and regressor.fit_report_ is regressor.fit_.report
    assert regressor.fit_report_.num_rows == N
    summary = regressor.summary()
    assert all(
        part in summary for part in ("DeepGPRegressor(max_steps=150, num_layers=2)", "noise_variance", "Settling")
    )
    assert "<style>" in regressor._repr_html_()
    with pytest.raises(ValueError, match="feature names"):
        regressor.predict(table(5)[0].rename(columns={"kind": "sort"}))


def test_weights_are_rows_repeated_in_any_order(regressor):
    x, y = table()
    x = regressor.encoding_.apply(x)  # as numbers: the median that fills a gap is that of the table itself
    weights = np.resize([1, 2, 0, 1], N)
    weighted = DeepGPRegressor(num_layers=2, max_steps=STEPS).fit(x, y, sample_weight=weights)
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(N), weights))
    repeated = DeepGPRegressor(num_layers=2, max_steps=STEPS).fit(x[order], y[order])
    at = regressor.encoding_.apply(table(20, seed=1)[0])
    for left, right in zip(weighted.predict(at, return_std=True), repeated.predict(at, return_std=True), strict=True):
        assert_allclose(left, right, rtol=1e-12)
    assert np.max(np.abs(weighted.predict(at) - regressor.predict(table(20, seed=1)[0]))) > 1e-3


def test_a_fit_on_other_rows_compiles_nothing_new(regressor):
    """N = 50 and N = 40 have one padded size, hence one program."""
    sizes = {len(Rows(np.zeros((n, 2)), np.zeros((n, 1)), np.ones(n)).padded().x) for n in (1, 40, 50, 64)}
    assert sizes == {64}
    again = DeepGPRegressor(num_layers=2, max_steps=STEPS).fit(*table(40))
    assert again.fit_report_.seconds < regressor.fit_report_.seconds


def test_saved_estimators_predict_the_same_to_the_last_bit(regressor, tmp_path):
    x, _ = table(20, seed=1)
    dgpax.save(regressor, tmp_path / "model")
    again = dgpax.load_model(tmp_path / "model")
    assert isinstance(again, DeepGPRegressor) and again.get_params() == regressor.get_params()
    joblib.dump(regressor, tmp_path / "joblib")
    for other in (again, joblib.load(tmp_path / "joblib")):
        assert_array_equal(other.predict(x), regressor.predict(x))
        assert_array_equal(other.predict_interval(x), regressor.predict_interval(x))
        assert list(other.feature_names_in_) == ["height", "kind"]
        assert other.summary() == regressor.summary()


def test_files_with_other_estimators_are_refused(regressor, tmp_path):
    saved = as_saved(regressor)
    wrong = [
        SavedEstimator("SVC", saved.settings, saved.learnt),
        SavedEstimator(saved.kind, {"verbose": 1}, saved.learnt),
        SavedEstimator(saved.kind, saved.settings, saved.learnt | {"predict": 1}),
        SavedEstimator(saved.kind, saved.settings, {}),
    ]
    for value in wrong:
        write(tmp_path / "model", "dgpax model", value, REGISTRY)
        with pytest.raises(ModelFileError, match="The file holds"):
            dgpax.load_model(tmp_path / "model")
    with pytest.raises(ModelFileError, match="Call fit"):
        dgpax.save(DeepGPRegressor(), tmp_path / "model")


@pytest.mark.slow
def test_another_process_predicts_the_same(regressor, tmp_path):
    x, _ = table(20, seed=1)
    dgpax.save(regressor, tmp_path / "model")
    x.to_json(tmp_path / "x")
    code = (
        "import sys, numpy, pandas, dgpax\n"
        "model = dgpax.load_model(sys.argv[1])\n"
        "print(model.predict(pandas.read_json(sys.argv[2])).tobytes().hex())"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "model"), str(tmp_path / "x")]
    printed = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    here = regressor.predict(pd.read_json(tmp_path / "x"))
    assert printed.strip() == here.tobytes().hex()


@pytest.mark.slow
def test_exact_inference_is_that_of_fit(rng):
    x = rng.normal(size=(30, 2))
    y = x[:, 0] + 0.1 * rng.normal(size=30)
    model = DeepGPRegressor(inference="exact").fit(x, y)
    wanted = dgpax.predict(dgpax.fit(dgpax.gp_regression(dgpax.dataset(x, y)), dgpax.dataset(x, y)), x)
    mean, stddev = model.predict(x, return_std=True)
    assert_allclose(mean, wanted.mean[:, 0], rtol=1e-6)
    assert_allclose(stddev, wanted.stddev[:, 0], rtol=1e-6)
    with pytest.raises(InputError, match="whole numbers"):
        model.fit(x, y, sample_weight=np.full(30, 0.5))
    with pytest.raises(InputError, match='partial_fit is for inference="variational"'):
        model.partial_fit(x, y)


def test_what_stride_is_asked_for(rng):
    """The default is what docs/stride.md recommends."""
    rows = Rows(rng.normal(size=(30, 3)), rng.normal(size=(30, 1)))
    words: dict[str, Any] = {"num_layers": 3, "num_particles": 7, "num_inducing": 5, "max_steps": 300}
    for recipe, model, numbers, steps in (
        (Recipe(inference="stride"), Residual(1), (30, 50), 4000),
        (Recipe(inference="stride", architecture="composition", **words), Composition(2), (5, 7), 300),
    ):
        planned = plan(recipe, rows)
        assert planned.model == model and isinstance(planned.method, Stride)
        assert (planned.method.num_inducing, planned.method.num_particles) == numbers
        assert planned.method.schedule.num_iterations * planned.method.schedule.num_steps == steps


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"inference": "magic"}, UnknownNameError),
        ({"posterior": "magic"}, UnknownNameError),
        ({"likelihood": "magic"}, UnknownNameError),
        ({"inference": "exact", "num_layers": 2}, InputError),
        ({"inference": "exact", "likelihood": "student_t"}, InputError),
        ({"num_inducing": 0}, InputError),
        ({"likelihood": "poisson"}, InputError),
        ({"inference": "stride", "architecture": "magic"}, UnknownNameError),
        ({"inference": "stride", "num_particles": 0}, InputError),
        ({"inference": "stride", "num_layers": 1}, InputError),
        ({"inference": "stride", "likelihood": "student_t"}, InputError),
    ],
)
def test_settings_that_make_no_sense(settings, error):
    with pytest.raises(error):
        DeepGPRegressor(**settings).fit([[1.0], [2.0]], [-1.0, 0.5])


@pytest.mark.parametrize(
    ("y", "error"),
    [
        ([1.0, np.nan], InputError),
        ([1.0, np.inf], InputError),
        (["a", "b"], InputTypeError),
        ([1.0], InputError),
        ([[1.0, np.nan], [2.0, np.nan]], InputError),
        (None, InputError),
    ],
)
def test_targets_that_cannot_be_used(y, error):
    with pytest.raises(error):
        DeepGPRegressor().fit([[1.0], [2.0]], y)


def test_nothing_works_before_fit():
    regressor, classifier = DeepGPRegressor(), DeepGPClassifier()
    for call in (
        *(regressor.predict, regressor.predict_quantiles, regressor.predict_interval, regressor.predict_dist),
        *(regressor.sample_y, classifier.predict, classifier.predict_proba, DeepGPTransformer().transform),
    ):
        with pytest.raises(NotFittedError):
            call([[1.0]])
    with pytest.raises(NotFittedError):
        DeepGPRegressor().summary()


def test_equal_rows_become_one():
    rows = Rows(
        np.array([[2.0], [1.0], [2.0], [3.0]]), np.array([[0.0], [1.0], [0.0], [5.0]]), np.array([1, 2, 3, 0.0])
    )
    merged = rows.merged()
    assert_array_equal(merged.x, [[1.0], [2.0]])
    assert_array_equal(merged.weights, [2.0, 4.0])
    padded = merged.padded()
    assert padded.num_rows == 64 and np.sum(padded.weighted(jnp.ones(64))) == 6.0
    assert rows.repeated("exact").num_rows == 6


def test_sizes_are_few():
    assert sorted({suitable_size(n) for n in range(1, 513)}) == [64, 128, 256, 512]
    assert suitable_size(513) == 640
    assert suitable_counts(20, None, False) == (32, 32)
    assert suitable_counts(5000, None, False) == (32, 256)
    assert suitable_counts(5000, None, True) == (128, 128)
    assert suitable_counts(5000, 70, False) == (70, 70)


def test_inducing_points_are_distinct_even_if_rows_are_few(rng):
    for rows in (np.zeros((1, 2)), rng.normal(size=(7, 2)), rng.normal(size=(100, 2))):
        data = dgpax.dataset(rows, np.arange(len(rows)))
        model = with_inducing(dgpax.deep_gp(data, 2, 1), data.x, (8, 16), 0)
        locations = [np.asarray(layer.inducing.locations.value) for layer in model.layers]
        assert [len(np.unique(z, axis=0)) for z in locations] == [8, 16]
