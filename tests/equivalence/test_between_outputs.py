"""Outputs that depend on each other: likelihoods, densities and draws see their covariance."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import multivariate_normal

import dgpax
from dgpax import DeepGP, GPLayer
from dgpax.distributions import Gaussian, GaussianOverOutputs
from dgpax.inducing import Points
from dgpax.inference import NaturalGradient
from dgpax.kernels import LMC, RBF
from dgpax.likelihoods import (
    BernoulliProbit,
    CorrelatedGaussianNoise,
    GaussianNoise,
    HeteroskedasticGaussian,
    PerOutput,
    Poisson,
    RobustMax,
    Softmax,
    StudentT,
)
from dgpax.objectives import elbo
from dgpax.posteriors import GaussianBlock, MeanField
from dgpax.prediction import log_density, predict_quantiles, sample_observations

N = 8
X = np.linspace(-1.0, 1.0, N)[:, None]
Y = np.random.default_rng(0).normal(size=(N, 2))
DATA = dgpax.dataset(X, Y)
SHARED = GPLayer(LMC(RBF(0.4), np.ones((2, 1))), 2, inducing=Points(X))
GRAM = np.exp(-0.5 * (X - X.T) ** 2 / 0.4**2)


def _noise(rho):
    return np.array([[1.0, rho], [rho, 1.0]])


def _optimum(rho):
    """q(v) = p(v | y), where one function is both outputs."""
    precision = np.linalg.inv(_noise(rho))
    covariance = np.linalg.inv(np.linalg.inv(GRAM) + precision.sum() * np.eye(N))
    mean = covariance @ (Y @ precision).sum(axis=1)
    L = np.linalg.cholesky(GRAM)
    whitened = np.linalg.solve(L, np.linalg.solve(L, covariance).T)
    return MeanField((GaussianBlock(np.linalg.solve(L, mean)[None], np.linalg.cholesky(whitened)[None]),)), covariance


@eqx.filter_jit
def _bound(model, posterior):
    return elbo(model, posterior, DATA).total


def _bound_of(target, data):
    model, posterior = target
    return elbo(model, posterior, data).total


def _log_density(y, mean, covariance):
    return multivariate_normal(np.asarray(mean), np.asarray(covariance)).logpdf(np.asarray(y))  # pyright: ignore


@pytest.mark.parametrize("rho", [-0.9, -0.3, 0.0, 0.5, 0.9])
def test_the_bound_is_below_the_evidence_and_reaches_it(rho, rng):
    model = DeepGP(SHARED, CorrelatedGaussianNoise(np.linalg.cholesky(_noise(rho))))
    everything = np.kron(GRAM, np.ones((2, 2))) + np.kron(np.eye(N), _noise(rho))
    evidence = _log_density(Y.ravel(), np.zeros(2 * N), everything)
    best, _ = _optimum(rho)
    np.testing.assert_allclose(_bound(model, best), evidence, atol=1e-8)
    for size in (1e-3, 0.1, 1.0):
        other = jax.tree.map(lambda leaf, size=size: leaf + size * rng.normal(size=leaf.shape), best)
        assert _bound(model, other) < evidence


@pytest.mark.parametrize("rho", [-0.9, 0.9])
def test_training_finds_the_exact_posterior(rho):
    model = dgpax.freeze(DeepGP(SHARED, CorrelatedGaussianNoise(np.linalg.cholesky(_noise(rho)))))
    engine = NaturalGradient(natural_rate=0.5, max_steps=200)
    fitted = dgpax.fit(model, DATA, "variational", engine=engine, progress=False)
    _, covariance = _optimum(rho)
    exact = np.sqrt(np.diagonal(covariance))[:, None]
    np.testing.assert_allclose(dgpax.predict_latent(fitted, X).stddev, np.hstack([exact, exact]), atol=1e-6)


def test_equal_outputs_are_drawn_equal_and_scored_together():
    x = np.linspace(-1.0, 1.0, 12)[:, None]
    data = dgpax.dataset(x, np.repeat(np.sin(3 * x), 2, axis=1))
    layer = GPLayer(LMC(RBF(0.8), np.ones((2, 1))), 2, inducing=Points(x[::3]))
    model = dgpax.freeze(DeepGP(layer, GaussianNoise(1e-4)))
    fitted = dgpax.fit(model, data, "variational", engine=NaturalGradient(max_steps=20), progress=False)
    away = np.array([[6.0]])
    drawn = sample_observations(fitted, away, num_samples=400)[:, 0]
    assert np.corrcoef(drawn.T)[0, 1] > 0.999
    sure, impossible = (
        float(log_density(fitted, dgpax.dataset(away, np.array([pair])))[0]) for pair in ([1.0, 1.0], [1.0, -1.0])
    )
    joint: Any = dgpax.predict_jointly(fitted, away, "outputs")
    expected = _log_density(np.ones(2), joint.mean[0], np.asarray(joint.covariance)[0] + 1e-4 * np.eye(2))
    assert impossible < -50 and sure == pytest.approx(expected, abs=1e-8)


def test_the_cost_of_mixing_grows_with_the_latent_processes():
    """[FRAMEWORK, Table 1]: N·P·L, not N·P·L²."""
    rng, flops = np.random.default_rng(0), {}
    data = dgpax.dataset(rng.normal(size=(20, 1)), rng.normal(size=(20, 100)))
    for L in (5, 20, 80):
        kernel = LMC(RBF(np.full((L, 1), 0.5), np.ones(L)), rng.normal(size=(100, L)))
        model = DeepGP(GPLayer(kernel, 100, inducing=Points(rng.normal(size=(4, 1)))), GaussianNoise(0.1))
        arrays, rest = eqx.partition((model, MeanField.at_prior(model.layers)), eqx.is_inexact_array)
        step = jax.value_and_grad(lambda arrays, rest=rest: _bound_of(eqx.combine(arrays, rest), data))
        cost: Any = jax.jit(step).lower(arrays).compile().cost_analysis()
        flops[L] = (cost[0] if isinstance(cost, list) else cost)["flops"]
    assert np.log(flops[80] / flops[5]) / np.log(16) < 1.1


MIXING = np.array([[1.0, 0.2], [0.8, -0.5], [-0.3, 1.1]])
MEAN = np.array([[0.3, -0.2, 0.5], [1.0, 0.4, -0.6]])
LOW_RANK = GaussianOverOutputs(jnp.asarray(MEAN), jnp.broadcast_to(MIXING @ MIXING.T, (2, 3, 3)))
ALONG = np.linspace(-8.0, 8.0, 501) + 0.003
GRID = np.stack(np.meshgrid(ALONG, ALONG), axis=-1).reshape(-1, 1, 2)
VALUES = MEAN + GRID @ MIXING.T
"""Of the three functions, on a grid of the two numbers behind them: 0.03 apart, where sums are integrals to 1e-4, and
to 1e-10 where what is summed is smooth. 200,000 draws would leave 1e-3 to 5e-3 (a standard error)."""
WEIGHTS = np.exp(-0.5 * np.sum(GRID[:, 0] ** 2, axis=1))
WEIGHTS /= WEIGHTS.sum()


def _averaged(values):
    return np.tensordot(WEIGHTS, np.asarray(values), axes=1)


def _two(q):
    return GaussianOverOutputs(q.mean[:, :2], q.covariance[:, :2, :2])


@pytest.mark.parametrize("likelihood", [Softmax(3), RobustMax(3, 0.05)], ids=["softmax", "robust max"])
def test_classes_on_mixed_processes(likelihood):
    labels = jnp.asarray([[2.0], [0.0]])
    logs = np.asarray(likelihood.log_probabilities(jnp.asarray(VALUES)))
    probabilities, expected = _averaged(np.exp(logs)), _averaged(logs)
    np.testing.assert_allclose(likelihood.class_probabilities(LOW_RANK), probabilities, atol=5e-4)
    np.testing.assert_allclose(likelihood.expected_log_probabilities(LOW_RANK), expected, atol=2e-3)
    picked = likelihood.expected_log_prob(LOW_RANK, labels)
    np.testing.assert_allclose(picked, expected[[0, 1], [2, 0]], atol=2e-3)
    diagonal = likelihood.class_probabilities(LOW_RANK.marginal())
    assert np.max(np.abs(diagonal - probabilities)) > 0.02


@pytest.mark.parametrize(("num", "near"), [(2, 1e-7), (3, 2e-3), (6, 1e-2)])
def test_the_largest_of_dependent_functions_has_a_slope(num, near):
    """Where the covariance is diagonal it is that of the integral over one number."""
    likelihood, mean = RobustMax(num, 0.05), jnp.asarray(np.resize(MEAN, (1, num)))
    variance = np.resize([0.5, 1.0, 2.0, 0.8], (1, num))

    def value(mean, together):
        q = Gaussian(mean, jnp.asarray(variance))
        if together:
            q = GaussianOverOutputs(mean, jnp.asarray(variance[..., None] * np.eye(num)))
        return likelihood.class_probabilities(q)[0, 0]

    slopes = [jax.grad(value)(mean, together) for together in (False, True)]
    np.testing.assert_allclose(slopes[1], slopes[0], atol=near)


def test_noise_that_depends_on_the_mean():
    likelihood, y = HeteroskedasticGaussian(), jnp.asarray([[0.7], [-0.5]])
    q = _two(LOW_RANK)
    f, g = VALUES[..., 0], VALUES[..., 1]
    logs = -0.5 * (np.log(2 * np.pi) + g + (np.asarray(y)[:, 0] - f) ** 2 * np.exp(-g))
    np.testing.assert_allclose(likelihood.expected_log_prob(q, y), _averaged(logs), rtol=1e-8)
    density = np.log(_averaged(np.exp(logs)))
    np.testing.assert_allclose(likelihood.predictive_log_prob(q, y), density, atol=2e-3)
    components = likelihood.components(GaussianOverOutputs(q.mean[None], q.covariance[None]))
    mixture = dgpax.distributions.Mixture(components)
    np.testing.assert_allclose(mixture.log_prob(y)[:, 0], density, atol=0.02)
    np.testing.assert_allclose(mixture.mean, likelihood.predictive_mean(q), atol=1e-10)


@pytest.mark.parametrize("likelihood", [HeteroskedasticGaussian(), PerOutput((HeteroskedasticGaussian(),))])
def test_predictions_of_noise_that_depends_on_the_mean(likelihood):
    """Where f and log noise are multiples of one function; the noise is one of seven values."""
    layer = GPLayer(LMC(RBF(0.5), np.array([[1.0], [1.5]])), 2, inducing=Points(X))
    model = DeepGP(layer, likelihood)
    untrained = NaturalGradient(max_steps=0)
    fitted = dgpax.fit(model, dgpax.dataset(X, Y[:, :1]), "variational", engine=untrained, progress=False)
    levels, away = np.array([0.05, 0.5, 0.95]), np.array([[9.0]])
    g = np.linspace(-8.0, 8.0, 4001)
    y = np.asarray(predict_quantiles(fitted, away, levels))[:, 0]
    below = ndtr((y - g) * np.exp(-0.75 * g)) @ np.exp(-0.5 * g**2) * (g[1] - g[0]) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(below, levels, atol=0.03)


@pytest.mark.parametrize(
    ("likelihood", "y"),
    [
        (Poisson(), [[2.0, 0.0], [1.0, 3.0]]),
        (BernoulliProbit(), [[1.0, 0.0], [1.0, 1.0]]),
        (StudentT(0.5, 3.0), [[0.3, 2.0], [-4.0, 0.1]]),
        (PerOutput((Poisson(), GaussianNoise(0.2))), [[2.0, -0.5], [1.0, np.nan]]),
    ],
    ids=["Poisson", "probit", "Student", "each its own"],
)
def test_densities_of_a_row_together(likelihood, y):
    y = jnp.asarray(y)
    exact = np.log(_averaged(np.exp(likelihood.log_prob(jnp.asarray(VALUES[..., :2]), y))))
    np.testing.assert_allclose(likelihood.predictive_log_prob(_two(LOW_RANK), y), exact, atol=1e-4)


def test_sharp_densities_of_a_row_together():
    """Counts of a million and noise of 1e-4 leave little of the space that q has; a quadratic is exact."""
    q = _two(LOW_RANK)
    y = q.mean + jnp.asarray([[0.5, 0.4], [-0.6, -0.5]])
    likelihood = GaussianNoise(1e-4)
    closed = likelihood.predictive_log_prob(q, y)
    by_points = PerOutput((likelihood, likelihood)).predictive_log_prob(q, y)
    np.testing.assert_allclose(by_points, closed, atol=1e-6)
    counts = Poisson(1e6)
    together = counts.predictive_log_prob(q, jnp.round(1e6 * jnp.exp(y)))
    normal = _log_density(y[0], q.mean[0], q.covariance[0]) - float(jnp.sum(y[0])) - 2 * np.log(1e6)
    assert float(together[0]) == pytest.approx(normal, abs=1e-3)
