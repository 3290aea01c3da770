"""Few rows: summits of the evidence, hyperparameters as a posterior, rows left out, candidates weighed."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from parts import fit_of
from saved_models import REPORT
from scipy import stats
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF as SklearnRBF
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel

import dgpax
from dgpax import DeepGP, DeepGPRegressor, GPLayer
from dgpax.data import standardise
from dgpax.errors import UnknownNameError
from dgpax.fits import Ensemble
from dgpax.inference import Exact, Sparse
from dgpax.kernels import RBF
from dgpax.likelihoods import GaussianNoise
from dgpax.metrics import stacking_weights
from dgpax.parameters import Bounded, LogNormalPrior, Positive, Real, find, log_jacobian, with_weak_priors
from dgpax.posteriors import ExactPosterior
from dgpax.prediction import leave_folds_out, leave_one_out, log_density


def wave_then_line(num_rows: int = 60, noise: float = 0.1, seed: int = 0) -> dgpax.Dataset:
    """[Higdon 2002], with a line behind the wave [Gramacy & Lee 2008]."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 20, num_rows)
    y = np.where(x < 9.6, np.sin(np.pi * x / 5) + 0.2 * np.cos(4 * np.pi * x / 5), -1 + x / 10)
    return dgpax.dataset(x[:, None], y / 0.63 + noise * rng.normal(size=num_rows))


def best_of_scikit_learn(data: dgpax.Dataset) -> float:
    x, y = np.asarray(data.x), np.asarray(data.y)[:, 0]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    lengthscales: Any = np.ones(x.shape[1])
    kernel = ConstantKernel(1.0, (1e-4, 1e6)) * SklearnRBF(lengthscales, (1e-2, 1e3)) + WhiteKernel(0.1, (1e-10, 10.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted: Any = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=10, random_state=0).fit(
            x, y
        )
    return float(fitted.log_marginal_likelihood_value_)


@pytest.mark.parametrize("seed", [0, 1])
def test_ripples_are_not_taken_for_noise(seed):
    data = wave_then_line(seed=seed)
    fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    assert fitted.report.objective_end > best_of_scikit_learn(data) - 1e-3


def test_noise_comes_back_from_its_floor():
    x = np.random.default_rng(0).uniform(-2, 2, (40, 2))
    data = dgpax.dataset(x, np.sin(x[:, 0]) * np.exp(-(x[:, 1] ** 2)))
    fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    assert fitted.report.objective_end > best_of_scikit_learn(data) - 0.1


def test_many_rows_have_one_start_the_best():
    data = wave_then_line(600)
    method = Exact()
    model = dgpax.gp_regression(data)
    scaled = model.to_model_units(data)
    starts: Any = method.starts(method.target(model, scaled), scaled)
    (start,) = starts
    assert float(start.layers[0].kernel.lengthscale.value[0]) < 0.5


def test_more_than_a_point_or_not():
    with pytest.raises(UnknownNameError, match="point, averaged"):
        Exact(hyperparameters="sharp")


PARAMETERS = [Real(np.array([0.3, -2.0])), Positive(np.array([0.1, 3.0])), Bounded(np.array([0.2, 0.9]), 0.0, 1.0)]


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda p: type(p).__name__)
def test_jacobians_are_derivatives(parameter):
    def value(free):
        raw = parameter.at_free(free)
        return jax.tree.map(lambda leaf: raw if leaf is parameter.raw else leaf, parameter).value

    slope = jnp.diag(jax.jacfwd(value)(parameter.free))
    assert_allclose(value(parameter.free), parameter.value, rtol=1e-12)
    assert_allclose(parameter.log_jacobian, jnp.log(jnp.abs(slope)), rtol=1e-6, atol=1e-6)
    assert_allclose(log_jacobian(parameter), jnp.sum(parameter.log_jacobian), rtol=1e-12, atol=1e-12)


def test_weak_priors_leave_what_is_known():
    own = LogNormalPrior(0.0, 0.1)
    kernel = RBF(Positive(jnp.asarray([1.0, 4.0])), variance=Positive(2.0, prior=own))
    believed = find(with_weak_priors(kernel))
    assert believed["variance"].prior == own
    prior = believed["lengthscale"].prior
    assert isinstance(prior, LogNormalPrior)
    assert_allclose((prior.mean, prior.scale), (np.log(5.4), 1.0))


def one_free(data: dgpax.Dataset, noise=0.05) -> DeepGP:
    """Only the length scale is open."""
    kernel = RBF(Positive(0.6, prior=LogNormalPrior(-0.5, 0.8)), variance=Real(1.0, trainable=False))
    return DeepGP(GPLayer(kernel), GaussianNoise(Real(noise, trainable=False)), standardise(data))


@pytest.mark.parametrize("inference", [Exact, Sparse], ids=lambda kind: kind.__name__)
def test_averages_are_those_of_quadrature(inference):
    """One hyperparameter: against sums over a grid of its posterior, by formulas in NumPy.

    The posterior has a heavier tail than its normal proposal, of which 256 draws see all but 1%.
    """
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (14, 1))
    data = dgpax.dataset(x, np.sin(4 * x) + 0.2 * rng.normal(size=x.shape))
    model, new = one_free(data), np.linspace(-1.2, 1.2, 7)[:, None]
    if inference is Sparse:
        known = Real(model.to_model_units(data).x, trainable=False)
        layer = GPLayer(model.layers[0].kernel, inducing=dgpax.inducing.Points(known))
        model = DeepGP(layer, model.likelihood, model.scaling)
    fitted = dgpax.fit(model, data, inference(hyperparameters="averaged", num_draws=256), progress=False)
    prediction = dgpax.predict(fitted, new)
    mean, variance = by_quadrature(model, data, new)
    assert isinstance(fitted, Ensemble)
    assert_allclose(prediction.mean[:, 0], mean, atol=6e-3)
    assert_allclose(prediction.variance[:, 0], variance, rtol=5e-2)


def by_quadrature(model: Any, data: dgpax.Dataset, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaling, noise = model.scaling, 0.05
    x, y = (np.asarray(part) for part in (scaling.inputs(data.x), scaling.outputs(data.y)[:, 0]))
    z = np.asarray(scaling.inputs(jnp.asarray(new)))

    def kernel(a, b, lengthscale):
        return np.exp(-0.5 * (a - b.T) ** 2 / lengthscale**2)

    grid = np.linspace(np.log(0.01), np.log(50.0), 1500)
    log_weights, means, variances = [], [], []
    for log_lengthscale in grid:
        lengthscale = np.exp(log_lengthscale)
        K, k = kernel(x, x, lengthscale) + noise * np.eye(len(x)), kernel(x, z, lengthscale)
        log_weights.append(stats.multivariate_normal.logpdf(y, cov=K) + stats.norm.logpdf(log_lengthscale, -0.5, 0.8))
        means.append(k.T @ np.linalg.solve(K, y))
        variances.append(1.0 + noise - np.sum(k * np.linalg.solve(K, k), axis=0))
    weights = np.exp(np.array(log_weights) - logsumexp(log_weights))
    mean = weights @ means
    variance = weights @ (np.array(variances) + np.array(means) ** 2) - mean**2
    scale, shift = float(scaling.y_scale[0]), float(scaling.y_mean[0])
    return shift + scale * mean, scale**2 * variance


X = np.linspace(-1.0, 1.0, 6)[:, None]
DATA = dgpax.dataset(X, np.stack([50 + 20 * np.sin(3 * X[:, 0]), X[:, 0] ** 2], axis=1))


def exact(pair: tuple[float, float], data: dgpax.Dataset, scaling=None):
    lengthscale, noise = pair
    model = DeepGP(
        GPLayer(RBF(lengthscale), num_outputs=2),
        GaussianNoise(noise),
        standardise(data) if scaling is None else scaling,
    )
    return fit_of(model, ExactPosterior.condition(model, model.to_model_units(data)), REPORT, 1)


@pytest.mark.parametrize(
    "pairs", [[(0.5, 0.1)], pytest.param([(0.5, 0.1), (0.9, 0.02)], marks=pytest.mark.slow)], ids=["one", "two"]
)
def test_rows_left_out_by_formula_and_by_hand(pairs: Any):
    """A row's density under a fit without it; of two, weighed by what the other rows say of them."""
    scaling = standardise(DATA)
    whole = Ensemble([exact(pair, DATA) for pair in pairs], evidences(pairs, DATA))

    def by_hand(left_out):
        others = DATA.take(jnp.delete(jnp.arange(len(X)), left_out))
        members = [exact(pair, others, scaling) for pair in pairs]
        without = Ensemble(members, evidences(pairs, others, scaling))
        return log_density(without, DATA.take(left_out))

    each = [by_hand(jnp.array([row])) for row in range(len(X))]
    assert_allclose(leave_one_out(whole), np.concatenate(each), rtol=1e-8)
    folds = np.array([1, 0, 1, 0, 0, 1])
    in_folds = np.zeros(len(X))
    for fold in (0, 1):
        in_folds[folds == fold] = by_hand(jnp.asarray(np.flatnonzero(folds == fold)))
    assert_allclose(leave_folds_out(whole, folds), in_folds, rtol=1e-8)


def evidences(pairs: Any, data: dgpax.Dataset, scaling=None) -> np.ndarray:
    """Weights of hyperparameters that are equally probable before the data."""
    logs = []
    for pair in pairs:
        model = exact(pair, data, scaling).model
        logs.append(float(dgpax.objectives.log_evidence(model, model.to_model_units(data)).total))
    return np.exp(np.array(logs) - logsumexp(logs))


def test_stacking_is_the_best_mixture():
    densities: Any = stats.norm.logpdf(np.random.default_rng(0).normal(size=(1, 80)), [[0.0], [1.5]], [[1.4], [0.6]])
    weights = stacking_weights(densities)

    def loss(w):
        mixed: Any = logsumexp(densities, axis=0, b=np.array([[w], [1 - w]]))
        return -np.sum(mixed) - 0.5 * np.log(w * (1 - w))

    best = minimize(lambda w: loss(float(w[0])), [0.5], bounds=[(1e-6, 1 - 1e-6)]).x[0]
    assert_allclose(weights, [best, 1 - best], atol=1e-3)


@pytest.mark.slow
def test_the_default_weighs_depths():
    data = wave_then_line()
    x, y = np.asarray(data.x), np.asarray(data.y)[:, 0]
    regressor = DeepGPRegressor().fit(x, y)
    report, fitted = regressor.fit_report_, regressor.fit_
    assert isinstance(fitted, Ensemble)
    assert {"one layer, rbf, exact", "one layer, matern52, exact", "two layers"} <= set(report.details)
    assert_allclose(sum(fitted.weights), 1.0)
    one = DeepGPRegressor(inference="exact").fit(x, y)
    new = wave_then_line(500, seed=5)
    scores = [float(jnp.mean(log_density(r.fit_, new))) for r in (regressor, one)]
    assert scores[0] > scores[1] - 0.05
    regressor.partial_fit(x, y)
    assert np.isfinite(regressor.predict(x)).all()
