"""SGHMC against a posterior that is known: one layer, Gaussian noise."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import stats

import dgpax
from dgpax import DeepGP, GPLayer
from dgpax.data import InMemory
from dgpax.errors import InputError, InputTypeError, NumericalError
from dgpax.inducing import Points
from dgpax.inference import SGHMC, Sampling
from dgpax.kernels import RBF
from dgpax.likelihoods import GaussianNoise
from dgpax.means import Zero
from dgpax.parameters import fixed, freeze
from dgpax.posteriors import Particles

M, NUM_DRAWS = 5, 2_000


def _model() -> DeepGP:
    z = np.linspace(-2, 2, M)[:, None]
    layer = GPLayer(RBF(fixed(1.0), fixed(1.0)), 1, Zero(), Points(fixed(z)))
    return freeze(DeepGP(layer, GaussianNoise(0.2)), "likelihood.noise_variance")


def _data():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (60, 1))
    return x, np.sin(2 * x) + np.sqrt(0.2) * rng.normal(size=x.shape)


def _exact():
    """p(v | y) ∝ N(v; 0, I) Π N(y_n; a_n v, r_n + σ²), in NumPy."""
    x, y = _data()
    z = np.linspace(-2, 2, M)[:, None]
    k = lambda a, b: np.exp(-0.5 * (a - b.T) ** 2)  # noqa: E731
    L = np.linalg.cholesky(k(z, z))
    A = np.linalg.solve(L, k(z, x)).T
    noise = 1.0 - np.sum(A**2, axis=1) + 0.2
    precision = np.eye(M) + A.T @ (A / noise[:, None])
    covariance = np.linalg.inv(precision)
    return covariance @ (A.T @ (y[:, 0] / noise)), covariance


def _draws(batch_size: int | None, step_size: float, spacing: int) -> np.ndarray:
    x, y = _data()
    engine = SGHMC(
        step_size=step_size,
        num_warmup=2_000,
        spacing=spacing,
        num_draws=NUM_DRAWS,
        steps_per_call=20_000,
    )
    data = InMemory(dgpax.dataset(x, y), batch_size)
    fitted = dgpax.fit(_model(), data, Sampling(NUM_DRAWS), engine=engine, seed=1, progress=False)
    assert isinstance(fitted.posterior, Particles)
    return np.asarray(fitted.posterior.blocks[0][:, 0])


def _effective(draws: np.ndarray) -> float:
    """The number of independent draws that would tell as much about a mean, by the autocorrelation to lag 20."""
    centred = draws - draws.mean(axis=0)
    variance = np.mean(centred**2, axis=0)
    lags = [np.mean(centred[lag:] * centred[:-lag], axis=0) / variance for lag in range(1, 21)]
    return len(draws) / float(np.max(1 + 2 * np.sum(np.maximum(lags, 0.0), axis=0)))


@pytest.mark.slow
@pytest.mark.parametrize(("batch_size", "step_size", "spacing"), [(None, 0.3, 100), (20, 0.05, 500)])
def test_draws_have_the_moments_of_the_exact_posterior(batch_size, step_size, spacing):
    """Whitened by the exact posterior, draws are N(0, I): means and covariances within 4 standard errors (20 numbers, a
    false alarm in 800), and every direction passes a test of normality (p > 0.001), which SGHMC failed in STAR."""
    mean, covariance = _exact()
    draws = _draws(batch_size, step_size, spacing)
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), (draws - mean).T).T
    effective = _effective(whitened)
    assert effective > NUM_DRAWS / 4
    assert np.max(np.abs(whitened.mean(axis=0))) < 4 / np.sqrt(effective)
    errors = np.sqrt((1 + np.eye(M)) / effective)
    tolerance = 4 * errors + (0.0 if batch_size is None else 0.5 * step_size)
    assert np.all(np.abs(np.cov(whitened.T) - np.eye(M)) < tolerance)
    thinned = whitened[:: max(1, round(NUM_DRAWS / effective))]
    assert min(float(np.asarray(stats.shapiro(column))[1]) for column in thinned.T) > 0.001


def test_prediction_mixes_the_draws():
    x, y = _data()
    engine = SGHMC(num_warmup=100, spacing=5, num_draws=7, steps_per_call=135)
    fitted = dgpax.fit(_model(), dgpax.dataset(x, y), Sampling(7), engine=engine, progress=False)
    prediction = dgpax.predict(fitted, x[:3])
    assert isinstance(fitted.posterior, Particles) and fitted.posterior.shape == (7,)
    assert prediction.mean.shape == (3, 1)
    assert float(np.sqrt(np.mean((prediction.mean - np.sin(2 * x[:3])) ** 2))) < 0.6


def test_a_step_size_that_diverges_keeps_nothing_that_is_not_finite():
    x, y = _data()
    engine = SGHMC(step_size=50.0, num_warmup=300, spacing=10, num_draws=5, steps_per_call=50)
    try:
        fitted = dgpax.fit(_model(), dgpax.dataset(x, y), Sampling(5), engine=engine, progress=False)
    except NumericalError as error:
        assert "finite" in str(error)
    else:
        assert all(bool(np.all(np.isfinite(leaf))) for leaf in jax.tree.leaves(fitted.posterior))


@pytest.mark.slow
def test_deep_models_are_sampled_and_their_parameters_trained():
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, (40, 1))
    data = dgpax.dataset(x, np.tanh(5 * x) + 0.05 * rng.normal(size=x.shape))
    engine = SGHMC(num_warmup=400, spacing=5, num_draws=10, steps_per_call=150)
    fitted = dgpax.fit(dgpax.deep_gp(data, 2, 8), data, Sampling(10), engine=engine, progress=False)
    assert float(np.sqrt(np.mean((dgpax.predict(fitted, x).mean - data.y) ** 2))) < 0.3


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="step_size"):
        SGHMC(step_size=0.0)
    x, y = _data()
    with pytest.raises(InputError, match="num_draws"):
        dgpax.fit(_model(), dgpax.dataset(x, y), Sampling(3), engine=SGHMC(num_draws=4), progress=False)
    with pytest.raises(InputTypeError, match="sghmc"):
        dgpax.fit(_model(), dgpax.dataset(x, y), "variational", engine=SGHMC(), progress=False)
