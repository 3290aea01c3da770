"""Estimators: the checks of scikit-learn, every word, pipelines."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dgpax
from dgpax import DeepGPClassifier, DeepGPRegressor, DeepGPTransformer

pytestmark = pytest.mark.slow

CHECKS = """
import sys, warnings
from sklearn.utils.estimator_checks import check_estimator
import dgpax
warnings.simplefilter("ignore")
words = {"num_layers": 2} if sys.argv[1] == "DeepGPRegressor" else {}
results = check_estimator(getattr(dgpax, sys.argv[1])(**words), on_fail=None, on_skip=None)
for result in results:
    if result["status"] != "passed":
        print(result["check_name"], result["status"], result["exception"])
print(len(results), "checks")
"""


@pytest.mark.parametrize("name", ["DeepGPRegressor", "DeepGPClassifier", "DeepGPTransformer"])
def test_the_checks_of_scikit_learn_pass(name):
    """All of them, none skipped: in a process of its own, as one of them needs an environment variable."""
    arguments = [sys.executable, "-c", CHECKS, name]
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    result = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True)
    *complaints, total = result.stdout.strip().splitlines()
    assert not complaints and int(total.split()[0]) > 40


@pytest.fixture(scope="module")
def curve() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(60, 1))
    return x, np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=60)


@pytest.mark.parametrize("word", ["layer-wise", "stripes-and-arrow", "fully-coupled", "chain"])
def test_every_posterior(word, curve):
    x, y = curve
    model = DeepGPRegressor(posterior=word).fit(x, y)
    assert model.score(x, y) > 0.9
    assert model.sample_y(x[:3], 2).shape == (3, 2)


def test_points_as_locations(curve):
    """It trains, if poorly: what it predicts is honest all the same."""
    x, y = curve
    model = DeepGPRegressor(posterior="points-as-locations", max_steps=1000).fit(x, y)
    low, high = model.predict_interval(x, 0.9).T
    assert np.mean((y >= low) & (y <= high)) > 0.8


@pytest.mark.parametrize("settings", [{"inference": "sparse"}, {"inference": "sghmc", "max_steps": 4000}])
def test_other_inference(settings, curve):
    x, y = curve
    model = DeepGPRegressor(**settings).fit(x, y)
    assert model.score(x, y) > 0.8
    assert model.sample_y(x[:3], 2).shape == (3, 2)
    assert model.predict(x[:3], return_cov=True)[1].shape == (3, 3)


@pytest.mark.filterwarnings("ignore:The chains")
def test_stride(curve):
    x, y = curve
    model = DeepGPRegressor(inference="stride", num_inducing=15, num_particles=20, max_steps=300).fit(x[:40], y[:40])
    assert model.score(x, y) > 0.8
    assert model.predict_interval(x).shape == (60, 2)
    assert model.sample_y(x[:3], 2).shape == (3, 2)
    assert "acceptance" in model.summary() and "num particles        20" in model.summary()
    _check_copies(model, x[:1])
    short: Any = clone(model)
    hurried = short.set_params(max_time=0.0).fit(x[:40], y[:40]).fit_report_
    assert hurried.steps == 1 and hurried.unfinished and "time" in hurried.stopped_because


def _check_copies(model, row):
    """Observations of copies of a row share f and nothing else, in draws and in the covariance of 1,000 of them.

    Bounds: 4 standard errors.
    """
    copies, count = np.repeat(row, 20, axis=0), 100
    noise = float(model.fit_.model.likelihood.noise_variance.value) * float(model.fit_.model.scaling.y_scale[0]) ** 2
    within = np.mean(np.var(model.sample_y(copies, count), axis=0, ddof=1))
    assert_allclose(within, noise, rtol=4 * np.sqrt(2 / (19 * count)))
    covariance = model.predict(copies, return_cov=True)[1]
    total = covariance[0, 0]
    between = covariance[~np.eye(20, dtype=bool)]
    assert_allclose(between, total - noise, atol=4 * total * np.sqrt(2 / 1000))


@pytest.mark.parametrize("word", ["student_t", "heteroskedastic", "poisson", "negative_binomial"])
def test_every_likelihood(word, curve):
    x, y = curve
    counts = word in ("poisson", "negative_binomial")
    targets = np.random.default_rng(1).poisson(np.exp(2 + y)) if counts else 1000 + 50 * y
    model = DeepGPRegressor(likelihood=word, max_steps=500).fit(x, targets)
    assert model.score(x, targets) > 0.7
    low, high = model.predict_interval(x, 0.9).T
    assert 0.8 <= np.mean((targets >= low) & (targets <= high)) <= 1.0
    assert model.sample_y(x[:3], 4).shape == (3, 4)
    if word == "heteroskedastic":
        mean, stddev = model.predict(x, return_std=True)
        assert_allclose(model.predict_dist(x).mean[:, 0], mean)
        assert_allclose(model.predict_dist(x).stddev[:, 0], stddev, rtol=0.1)


def test_several_outputs_with_gaps(curve):
    x, y = curve
    targets = np.stack([y, 5.0 - 2.0 * y], axis=1)
    targets[::3, 0] = np.nan
    model = DeepGPRegressor(num_layers=2, max_steps=400).fit(x, targets)
    mean, stddev = model.predict(x, return_std=True)
    assert mean.shape == stddev.shape == (60, 2)
    assert model.score(x, targets) > 0.8
    assert np.sqrt(np.mean((mean[::3, 0] - y[::3]) ** 2)) < 0.3
    assert model.predict_quantiles(x, [0.1, 0.5, 0.9]).shape == (60, 2, 3)
    assert model.sample_y(x, 4).shape == (60, 2, 4)
    assert model.predict(x[:5], return_cov=True)[1].shape == (5, 5, 2)


def test_partial_fit_goes_on(curve):
    x, y = curve
    model = DeepGPRegressor(num_layers=2, max_steps=300).partial_fit(x[:30], y[:30])
    before = model.score(x, y)
    for _ in range(2):
        model.partial_fit(x[30:], y[30:])
        model.partial_fit(x[:30], y[:30])
    assert model.num_rows_seen_ == 30 + 4 * 30
    assert model.score(x, y) > before - 0.05 and model.score(x, y) > 0.8


def test_labels_are_text():
    x, y = make_moons(120, noise=0.2, random_state=0)
    labels = np.array(["down", "up"])[y]
    model = DeepGPClassifier().fit(x, labels)
    assert list(model.classes_) == ["down", "up"]
    assert model.score(x, labels) > 0.9
    assert_allclose(model.predict_proba(x).sum(axis=1), 1.0)
    assert set(model.predict(x)) == {"down", "up"}
    more = DeepGPClassifier(max_steps=200).partial_fit(x[:60], labels[:60], classes=["down", "left", "up"])
    assert more.predict_proba(x).shape == (120, 3)
    assert more.partial_fit(x[60:], labels[60:]).score(x, labels) > 0.7


def test_saved_classifiers_and_transformers(tmp_path):
    rng = np.random.default_rng(0)
    x, y = make_moons(50, noise=0.2, random_state=0)
    classifier = DeepGPClassifier(max_steps=50).fit(x, np.array(["down", "up"], dtype=object)[y])
    dgpax.save(classifier, tmp_path / "classifier")
    again = dgpax.load_model(tmp_path / "classifier")
    assert_array_equal(again.predict_proba(x), classifier.predict_proba(x))
    assert_array_equal(again.predict(x), classifier.predict(x))
    wide = x @ rng.normal(size=(2, 5)) + 0.01 * rng.normal(size=(50, 5))
    transformer = DeepGPTransformer(max_steps=100).fit(wide)
    assert_array_equal(transformer.transform(wide), transformer.embedding_)
    dgpax.save(transformer, tmp_path / "transformer")
    assert_array_equal(dgpax.load_model(tmp_path / "transformer").transform(wide), transformer.embedding_)
    frame = transformer.set_output(transform="pandas").transform(wide)
    assert list(frame.columns) == ["deepgptransformer0", "deepgptransformer1"]
    assert np.mean((transformer.inverse_transform(frame) - wide) ** 2) < 0.2 * np.var(wide)


def test_pipelines_and_searches(curve):
    x, y = curve
    pipeline = make_pipeline(StandardScaler(), DeepGPRegressor(num_layers=2, max_steps=200))
    search = GridSearchCV(pipeline, {"deepgpregressor__num_layers": [1, 2]}, cv=3).fit(x, y)
    assert search.best_score_ > 0.8
    assert np.min(cross_val_score(pipeline, x, y, cv=3)) > 0.7
    again: Any = clone(pipeline)
    again.set_params(deepgpregressor__num_layers=1)
    assert again.get_params()["deepgpregressor"].num_layers == 1
