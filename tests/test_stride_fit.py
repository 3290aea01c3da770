"""The whole of STRIDE on small data."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import stride as reference

import dgpax
from dgpax import metrics
from dgpax.errors import InputError
from dgpax.kernels import RBF, Linear, Matern32
from dgpax.prediction import log_density, predict_moments
from dgpax.stride import (
    AbstractArchitecture,
    Composition,
    Convolution,
    CrossApproximation,
    EllipticalSlice,
    FullySparse,
    Injective,
    Schedule,
    Standard,
    Stride,
    StrideFit,
)

pytestmark = pytest.mark.filterwarnings("ignore:The chains")

N, M, S = 40, 8, 4
SHORT = Schedule(num_iterations=2, num_steps=6, num_exchanges=2, num_candidates=10, warm_up=1)
KERNEL = Matern32(1.0, 1.0)


def fit(architecture: AbstractArchitecture, data, *numbers, **settings) -> StrideFit:
    return dgpax.fit(architecture, data, Stride(*numbers, **settings), progress=False)


def step_data(seed=0, units=1000.0, offset=5e4):
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, N)[:, None]
    y = np.sin(6 * x) + np.where(x > 0.6, 2.0, 0.0) + 0.05 * rng.normal(size=(N, 1))
    return dgpax.dataset(100 * x, offset + units * y)


@pytest.fixture(scope="module")
def data():
    return step_data()


@pytest.fixture(scope="module")
def fitted(data):
    return fit(Injective(1), data, M, S, schedule=SHORT, kernel=KERNEL)


@pytest.mark.slow
def test_prediction_is_a_mixture_in_raw_units(data, fitted):
    prediction: Any = dgpax.predict(fitted, data.x)
    noise_variance = fitted.model.likelihood.noise_variance.value * fitted.model.scaling.y_scale**2
    assert prediction.mean.shape == (N, 1)
    assert prediction.base.components.mean.shape == (S, N, 1)
    assert float(metrics.smse(data.y, prediction)) < 0.4
    assert np.isfinite(float(metrics.nlpd(data.y, prediction)))
    assert np.isfinite(float(metrics.mnll_stride(data.y, prediction.mean, noise_variance)))
    moments = predict_moments(fitted, data.x)
    assert_allclose(moments.mean, prediction.mean, rtol=1e-10)
    assert_allclose(moments.variance, prediction.variance, rtol=1e-10)
    assert_allclose(log_density(fitted, data), prediction.log_prob(data.y)[:, 0], rtol=1e-9)
    latent = dgpax.predict_latent(fitted, data.x)
    assert_allclose(prediction.variance - latent.variance, float(noise_variance[0]), rtol=1e-6)


@pytest.mark.slow
def test_the_mixture_is_made_of_sparse_gps(data, fitted):
    """One particle's component, from the definitions of section 2.3."""
    posterior, chains = fitted.target.posterior, fitted.target.chains
    whitened = jax.tree.map(lambda leaf: leaf[2], chains.position)
    features = np.asarray(posterior.features(whitened))
    K = np.asarray(posterior.prior.top(features, features))
    rows, noise = np.asarray(fitted.inducing_rows), float(posterior.noise_variance)
    expected = reference.sparse_prediction(K, K, K[0, 0], rows, np.asarray(posterior.y), noise)
    components = fitted.latent(fitted.inputs(data.x), num_samples=1, seed=0)
    assert_allclose(components.mean[2], expected[0], atol=1e-6)
    assert_allclose(components.variance[2, :, 0], expected[1], atol=1e-6)
    now = reference.log_likelihood(reference.low_rank(K, rows), np.asarray(posterior.y), noise)
    assert_allclose(chains.log_likelihood[2], now, rtol=1e-8)


@pytest.mark.slow
def test_the_report(fitted):
    report, details = fitted.report, fitted.report.details
    assert report.steps == details["iterations"] == 2
    assert len(report.history) == len(details["bound"]) == len(details["acceptance_rate"]) == 2
    assert len(details["exchanged"]) == 2
    assert np.isfinite(details["r_hat"]) and details["effective_sample_size"] > 0
    assert "acceptance rate" in str(report)


@pytest.mark.slow
def test_inducing_points_are_distinct_rows(fitted):
    assert len(set(np.asarray(fitted.inducing_rows).tolist())) == M


@pytest.mark.slow
def test_a_fit_that_goes_on_is_the_same_fit(data):
    once = dataclasses.replace(SHORT, num_iterations=1)
    first, together = (fit(Injective(1), data, M, S, schedule=plan, kernel=KERNEL) for plan in (once, SHORT))
    more = dgpax.fit(Injective(1), data, first.more(1), progress=False)
    assert_array_equal(more.inducing_rows, together.inducing_rows)
    assert_array_equal(more.target.chains.position[0], together.target.chains.position[0])
    assert more.report.details["iterations"] == 2
    assert more.report.details["bound"].tolist() == together.report.details["bound"][1:].tolist()


CASES = [
    (Composition(2), CrossApproximation(10), M),
    (Convolution(1), FullySparse(), M),
    (Composition(1, width=3), Standard(), None),
]


@pytest.mark.slow
@pytest.mark.parametrize(("architecture", "hidden", "num_inducing"), CASES, ids=str)
def test_every_combination_runs(architecture, hidden, num_inducing):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(N, 2))
    y = np.stack([np.sin(3 * x[:, 0]), x[:, 0] * x[:, 1]], axis=1) + 0.05 * rng.normal(size=(N, 2))
    data = dgpax.dataset(x, y)
    fitted = fit(architecture, data, num_inducing, S, hidden=hidden, schedule=SHORT)
    prediction = dgpax.predict(fitted, x)
    assert prediction.mean.shape == (N, 2)
    assert float(metrics.smse(y, prediction)) < 0.8
    if isinstance(hidden, CrossApproximation):
        assert 0 <= fitted.report.details["hidden_error"] < 1


@pytest.mark.slow
def test_hidden_layers_of_many_rows_are_approximated(data, monkeypatch):
    monkeypatch.setattr("dgpax.stride._method.STANDARD_UP_TO", data.num_rows - 1)
    fitted = fit(Composition(), data, 5, 2, schedule=SHORT)
    assert isinstance(fitted.target.hidden, CrossApproximation)


@pytest.mark.slow
def test_elliptical_slice_behind_the_same_interface(data):
    fitted = fit(Injective(1), data, M, S, sampler=EllipticalSlice(), schedule=SHORT, kernel=KERNEL)
    assert fitted.report.details["acceptance_rate"][-1] == 1.0
    assert float(metrics.smse(data.y, dgpax.predict(fitted, data.x))) < 0.4


@pytest.mark.slow
def test_deep_is_better_where_the_function_jumps():
    """Figure 1, shorter: below half the error of the sparse GP with as many inducing points."""
    x, new = np.linspace(0, 1, 200)[:, None], np.linspace(0, 1, 1000)[:, None]
    noise = 0.02 * np.random.default_rng(0).normal(size=200)
    data = dgpax.dataset(x, reference.jumps(x[:, 0]) + noise)
    schedule = Schedule(num_iterations=5, num_steps=300, num_candidates=200)
    fitted = fit(Injective(1), data, 20, 5, schedule=schedule, kernel=KERNEL, noise_variance=0.02**2)
    truth = reference.jumps(new[:, 0])[:, None]
    deep = float(metrics.smse(truth, dgpax.predict(fitted, new)))
    shallow = float(metrics.smse(truth, dgpax.predict(fitted.initial.fitted, new)))
    assert deep < 0.5 * shallow


def tiny(rows=6):
    x = np.arange(float(rows))[:, None]
    return dgpax.dataset(x, np.sin(x))


def weighted():
    data = tiny()
    return dgpax.dataset(np.asarray(data.x), np.asarray(data.y), weights=np.ones(6))


def copies():
    return dgpax.dataset(np.repeat([[1.0], [2.0], [3.0]], 4, axis=0), np.arange(12.0))


BAD = {
    "more points than rows": (lambda: fit(Composition(), tiny(), 7), "distinct rows"),
    "no points": (lambda: fit(Composition(), tiny(), 0), "between 1"),
    "duplicates don't count": (lambda: fit(Composition(), copies(), 4), "3 of 12"),
    "injective in two dimensions": (
        lambda: fit(Injective(), dgpax.dataset(np.ones((5, 2)), np.ones(5)), 2),
        "one input",
    ),
    "no noise": (lambda: fit(Composition(), tiny(), 3, noise_variance=0.0), "must be positive"),
    "a kernel that isn't stationary": (lambda: fit(Composition(), tiny(), 3, kernel=Linear()), "stationary"),
    "weights": (lambda: fit(Composition(), weighted(), 3), "no row weights"),
    "no particles": (lambda: Stride(3, 0), "num_particles"),
    "a start beyond the prior": (lambda: Stride(3, 2, start_scale=1.5), "start_scale"),
    "sparse layers without points": (lambda: fit(Composition(), tiny(), None, 1, hidden=FullySparse()), "num_inducing"),
    "negative steps": (lambda: Schedule(num_steps=0), "at least 1"),
    "a model": (lambda: dgpax.fit(dgpax.gp_regression(tiny()), tiny(), "stride"), "takes an architecture"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    make, message = BAD[name]
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.slow
def test_going_on_with_something_else(data, fitted):
    other = dgpax.dataset(np.asarray(data.x), np.asarray(data.y) + 1.0)
    for architecture, rows, message in (
        (Injective(1), tiny(), "other data"), (Injective(1), other, "other data"), (Injective(2), data, "Injective"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            dgpax.fit(architecture, rows, fitted.more(1))


@pytest.mark.slow
def test_duplicate_rows_are_no_obstacle():
    x = np.repeat(np.linspace(0, 1, 15), 2)[:, None]
    data = dgpax.dataset(x, np.sin(5 * x) + 0.1 * np.random.default_rng(0).normal(size=x.shape))
    fitted = fit(Composition(), data, M, 2, schedule=SHORT, kernel=RBF(1.0, 1.0))
    chosen = np.asarray(data.x)[np.asarray(fitted.inducing_rows), 0]
    assert len(set(chosen.tolist())) == M
    assert np.all(np.isfinite(dgpax.predict(fitted, x).mean))


@pytest.mark.slow
def test_constant_targets():
    data = dgpax.dataset(np.linspace(0, 1, 12)[:, None], np.full(12, 3.0))
    prediction = dgpax.predict(fit(Composition(), data, 3, 2, schedule=SHORT), data.x)
    assert_allclose(prediction.mean, 3.0, atol=1e-2)
    assert jnp.all(jnp.isfinite(prediction.variance))
