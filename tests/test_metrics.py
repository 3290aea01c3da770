"""Metrics against scikit-learn and the definitions in reference/scores.py."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.metrics
from numpy.testing import assert_allclose, assert_array_equal
from reference import scores as reference
from scipy import stats

from dgpax import metrics
from dgpax.distributions import Gaussian, Mixture
from dgpax.errors import InputError

N, P = 40, 2


@pytest.fixture
def problem(rng) -> tuple[np.ndarray, Gaussian]:
    mean, stddev = rng.normal(size=(N, P)), rng.uniform(0.5, 2.0, size=(N, P))
    y = mean + stddev * rng.normal(size=(N, P))
    return y, Gaussian(jnp.asarray(mean), jnp.asarray(stddev**2))


@pytest.fixture
def gaps(rng) -> np.ndarray:
    """Which targets are missing: about a third, unevenly over the outputs."""
    return rng.uniform(size=(N, P)) < np.array([0.5, 0.1])


def make_classes(rng, num_classes: int):
    logits = 2.0 * rng.normal(size=(N, num_classes))
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = np.array([rng.choice(num_classes, p=row) for row in probabilities])
    return labels, probabilities


# Regression


def test_point_scores(problem):
    y, d = problem
    mean = np.asarray(d.mean)
    assert_allclose(metrics.rmse(y, d), sklearn.metrics.root_mean_squared_error(y.ravel(), mean.ravel()), rtol=1e-12)
    assert_allclose(metrics.mae(y, d), sklearn.metrics.mean_absolute_error(y, mean), rtol=1e-12)
    assert_allclose(metrics.smse(y, d), 1.0 - sklearn.metrics.r2_score(y, mean), rtol=1e-12)
    assert_allclose(metrics.smse(y, d), reference.standardised_mse(y, mean), rtol=1e-12)
    assert_allclose(metrics.rmse(y, mean + 1.0), np.sqrt(np.mean((y - mean - 1.0) ** 2)), rtol=1e-12)
    assert_allclose(metrics.smse(y, np.broadcast_to(y.mean(0), y.shape)), 1.0, rtol=1e-12)


def test_density_scores(problem):
    y, d = problem
    mean, stddev = np.asarray(d.mean), np.asarray(d.stddev)
    assert_allclose(metrics.nlpd(y, d), -np.mean(stats.norm.logpdf(y, mean, stddev)), rtol=1e-12)
    assert_allclose(metrics.crps(y, d), np.mean(reference.normal_crps(y, mean, stddev)), rtol=1e-12)
    assert_allclose(metrics.mnll_stride(y, mean, 0.3), reference.stride_mnll(y, mean, 0.3), rtol=1e-12)


def test_nlpd_of_a_mixture_is_log_mean_exp(problem, rng):
    y, d = problem
    means = np.asarray(d.mean) + rng.normal(size=(3, N, P))
    mixture = Mixture(Gaussian(jnp.asarray(means), jnp.ones((3, N, P))))
    density = np.mean(stats.norm.pdf(y, means), axis=0)
    assert_allclose(metrics.nlpd(y, mixture), -np.mean(np.log(density)), rtol=1e-12)


def test_missing_targets_are_left_out(problem, gaps):
    y, d = problem
    mean, stddev = np.asarray(d.mean), np.asarray(d.stddev)
    holes = np.where(gaps, np.nan, y)
    seen, guess = y[~gaps], mean[~gaps]
    assert_allclose(metrics.rmse(holes, d), np.sqrt(np.mean((seen - guess) ** 2)), rtol=1e-12)
    assert_allclose(metrics.mae(holes, d), np.mean(np.abs(seen - guess)), rtol=1e-12)
    assert_allclose(metrics.smse(holes, d), reference.standardised_mse(holes, mean), rtol=1e-12)
    assert_allclose(metrics.nlpd(holes, d), -np.mean(stats.norm.logpdf(seen, guess, stddev[~gaps])), rtol=1e-12)
    assert_allclose(metrics.crps(holes, d), np.mean(reference.normal_crps(seen, guess, stddev[~gaps])), rtol=1e-12)
    assert_array_equal(np.isnan(metrics.pit(holes, d)), gaps)
    inside = np.abs(seen - guess) <= stats.norm.ppf(0.95) * stddev[~gaps]
    assert_allclose(metrics.coverage(holes, d), np.mean(inside), rtol=1e-12)


def test_smse_skips_an_output_without_targets(problem):
    y, d = problem
    half = np.where([True, False], y, np.nan)
    assert_allclose(metrics.smse(half, d), reference.standardised_mse(y[:, :1], np.asarray(d.mean)[:, :1]), rtol=1e-12)


# Calibration


def test_calibration_curve(problem, gaps):
    y, d = problem
    holes = np.where(gaps, np.nan, y)
    exact = stats.norm(np.asarray(d.mean), np.asarray(d.stddev))
    levels, observed = metrics.calibration_curve(holes, d)
    assert_allclose(levels, np.arange(1, 100) / 100, rtol=1e-14)
    assert_allclose(observed, reference.quantile_calibration(holes, exact.ppf, np.asarray(levels)), rtol=1e-12)
    assert_allclose(metrics.calibration_error(holes, d), np.mean(np.abs(levels - observed)), rtol=1e-14)
    few, seen = metrics.calibration_curve(y, d, jnp.array([0.2, 1.0]))
    assert_allclose(seen, reference.quantile_calibration(y, exact.ppf, np.asarray(few)), rtol=1e-14)


def test_pit_and_intervals(problem):
    y, d = problem
    mean, stddev = np.asarray(d.mean), np.asarray(d.stddev)
    assert_allclose(metrics.pit(y, d), stats.norm.cdf(y, mean, stddev), rtol=1e-12)
    assert_allclose(metrics.mean_width(d, 0.5), np.mean(2 * stats.norm.ppf(0.75) * stddev), rtol=1e-12)
    assert_allclose(metrics.coverage(y, d, 0.5), np.mean(np.abs(y - mean) <= stats.norm.ppf(0.75) * stddev))


def test_right_predictions_are_calibrated_and_wrong_ones_are_not(rng):
    """4 standard errors: 10,000 targets have coverage 0.9 ± 0.012; the curve's error is below 2/√10,000."""
    mean = jnp.asarray(rng.normal(size=(10_000, 1)))
    y = mean + jnp.asarray(rng.normal(size=(10_000, 1)))
    right, narrow, wide = (Gaussian(mean, jnp.full_like(mean, scale**2)) for scale in (1.0, 1e-6, 1e6))
    assert abs(metrics.coverage(y, right) - 0.9) < 4 * (0.09 / 10_000) ** 0.5
    assert metrics.calibration_error(y, right) < 0.02
    assert_allclose(metrics.calibration_error(y, narrow), 0.25, atol=0.01)
    assert_allclose(metrics.calibration_error(y, wide), 0.25, atol=0.01)
    assert_allclose(metrics.calibration_error(mean - 100.0, right), 0.5, rtol=1e-12)


def test_report_collects_the_single_scores(problem):
    y, d = problem
    report = metrics.regression_report(y, d, level=0.5)
    assert all(type(value) is float for value in report.values())
    for name in ("rmse", "mae", "smse", "nlpd", "crps", "calibration_error"):
        assert report.pop(name) == float(getattr(metrics, name)(y, d))
    assert report == {"coverage": float(metrics.coverage(y, d, 0.5)), "mean_width": float(metrics.mean_width(d, 0.5))}


# Classification


@pytest.mark.parametrize("num_classes", [2, 4])
def test_class_scores_equal_scikit_learn(rng, num_classes):
    labels, probabilities = make_classes(rng, num_classes)
    classes = list(range(num_classes))
    accuracy = sklearn.metrics.accuracy_score(labels, probabilities.argmax(1))
    assert_allclose(metrics.accuracy(labels, probabilities), accuracy, rtol=1e-14)
    log_loss = sklearn.metrics.log_loss(labels, probabilities, labels=classes)
    assert_allclose(metrics.log_loss(labels, probabilities), log_loss, rtol=1e-12)
    one_hot = np.eye(num_classes)[labels]
    squares = np.sum((probabilities - one_hot) ** 2, axis=1)
    brier = sklearn.metrics.brier_score_loss(labels, probabilities[:, 1]) if num_classes == 2 else np.mean(squares)
    assert_allclose(metrics.brier(labels, probabilities), brier, rtol=1e-12)


def test_one_column_is_the_probability_of_class_one(rng):
    labels, probabilities = make_classes(rng, 2)
    for name in ("accuracy", "log_loss", "brier", "auc"):
        score = getattr(metrics, name)
        assert_allclose(score(labels, probabilities[:, 1]), score(labels, probabilities), rtol=1e-12)
        assert_allclose(score(labels[:, None], probabilities[:, 1:]), score(labels, probabilities), rtol=1e-12)


def test_auc_with_ties(rng):
    labels, scores = rng.integers(0, 2, size=N), rng.integers(0, 6, size=N) / 5
    assert_allclose(metrics.auc(labels, scores), reference.pairwise_auc(labels, scores), rtol=1e-14)
    assert_allclose(metrics.auc(labels, scores), sklearn.metrics.roc_auc_score(labels, scores), rtol=1e-14)
    assert_allclose(metrics.auc(labels, np.full(N, 0.5)), 0.5, rtol=1e-14)


def test_missing_labels_are_left_out(rng):
    labels, probabilities = make_classes(rng, 2)
    missing = rng.uniform(size=N) < 0.3
    holes = np.where(missing, np.nan, labels)
    for name in ("accuracy", "log_loss", "brier", "auc"):
        score = getattr(metrics, name)
        assert_allclose(score(holes, probabilities), score(labels[~missing], probabilities[~missing]), rtol=1e-12)


def test_log_loss_of_a_sure_mistake_is_finite():
    eps = np.finfo(np.float64).eps
    assert_allclose(metrics.log_loss(np.array([1]), np.array([[1.0, 0.0]])), -np.log(eps), rtol=1e-12)


# Types, transformations, errors


def test_float32_stays_float32(problem, rng):
    y, d = problem
    y32 = np.asarray(y, np.float32)
    d32 = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), d)
    for name in ("rmse", "mae", "smse", "nlpd", "crps", "coverage", "calibration_error", "pit"):
        score = getattr(metrics, name)(y32, d32)
        assert score.dtype == jnp.float32, name
        assert_allclose(score, getattr(metrics, name)(y, d), rtol=2e-5, atol=1e-5)
    assert metrics.mnll_stride(y32, d32.mean, 0.1).dtype == jnp.float32
    labels, probabilities = make_classes(rng, 2)
    for name in ("accuracy", "log_loss", "brier", "auc"):
        assert getattr(metrics, name)(labels, np.asarray(probabilities, np.float32)).dtype == jnp.float32


def test_jit_vmap_and_gradient(problem, gaps, rng):
    y, d = problem
    holes = jnp.asarray(np.where(gaps, np.nan, y))
    labels, probabilities = make_classes(rng, 2)

    def scores(y, d, labels, probabilities):
        regression = [getattr(metrics, name)(y, d) for name in ("rmse", "smse", "nlpd", "crps", "calibration_error")]
        return regression + [getattr(metrics, name)(labels, probabilities) for name in ("accuracy", "log_loss", "auc")]

    twice = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), (holes, d, jnp.asarray(labels), probabilities))
    plain = scores(holes, d, labels, probabilities)
    for alone, together in zip(plain, jax.jit(jax.vmap(scores))(*twice), strict=True):
        assert_allclose(together, [alone, alone], rtol=1e-12)

    gradient = jax.jit(jax.grad(lambda d: metrics.nlpd(holes, d) + metrics.crps(holes, d) + metrics.rmse(holes, d)))(d)
    assert np.all(np.isfinite(gradient.mean)) and np.all(np.isfinite(gradient.variance))
    assert_array_equal(np.asarray(gradient.mean)[gaps], 0.0)


@pytest.mark.parametrize("score", [metrics.rmse, metrics.nlpd, metrics.crps, metrics.pit, metrics.coverage])
def test_unusable_targets_are_refused(problem, score):
    y, d = problem
    with pytest.raises(InputError, match=r"y\[:, None\]"):
        score(y[:, 0], d)
    with pytest.raises(InputError, match="same shape"):
        score(y[1:], d)
    with pytest.raises(InputError, match="Every target is NaN"):
        score(np.full_like(y, np.nan), d)
    with pytest.raises(InputError, match="empty"):
        score(np.zeros((0, 2)), Gaussian(jnp.zeros((0, 2)), jnp.zeros((0, 2))))
    with pytest.raises(InputError, match="Mixture"):
        score(y, Gaussian(jnp.zeros((3, N, P)), jnp.ones((3, N, P))))


def test_unusable_labels_are_refused(rng):
    labels, probabilities = make_classes(rng, 3)
    refused = {
        "not one-hot": (np.eye(3)[labels], probabilities),
        "number of labels": (labels, probabilities[1:]),
        "whole numbers from 0 to 2": (labels + 1, probabilities),
        "Every label is NaN": (np.full(N, np.nan), probabilities),
        "empty": (labels[:0], probabilities[:0]),
        "between 0 and 1": (labels, 100 * probabilities),
        "sum to 1": (labels, 0.5 * probabilities),
    }
    for words, arguments in refused.items():
        with pytest.raises(InputError, match=words):
            metrics.accuracy(*arguments)
    with pytest.raises(InputError, match="two classes"):
        metrics.auc(labels, probabilities)
    with pytest.raises(InputError, match="both classes"):
        metrics.auc(np.ones(3), np.full(3, 0.5))
    with pytest.raises(InputError, match="levels"):
        metrics.calibration_curve(np.zeros((1, 1)), Gaussian(jnp.zeros((1, 1)), jnp.ones((1, 1))), jnp.zeros(0))
