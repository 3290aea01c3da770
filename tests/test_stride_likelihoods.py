"""STRIDE with a top layer that is sampled, for likelihoods other than Gaussian noise."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import dgpax
from dgpax.errors import InputError
from dgpax.kernels import RBF
from dgpax.likelihoods import BernoulliLogit, GaussianNoise, Poisson
from dgpax.prediction import log_density, predict_moments
from dgpax.stride import Chains, EllipticalSlice, FullySparse, Residual, Schedule, Stationary, Stride, run_chains
from dgpax.stride._top import SampledTop, SparseTop

SHORT = Schedule(num_iterations=2, num_steps=30, num_exchanges=1, num_candidates=20)
COVARIANCE = Stationary(RBF(0.5, 1.3))
X = np.linspace(-1, 1, 30)[:, None]
ROWS = jnp.arange(0, 30, 5)


def test_the_likelihood_of_a_sampled_top_layer(rng):
    v, y = rng.normal(size=(6, 1)), rng.poisson(2.0, size=(30, 1)).astype(float)
    K = 1.3 * np.exp(-0.5 * (X - X.T) ** 2 / 0.25)
    f = K[:, ::5] @ np.linalg.solve(np.linalg.cholesky(K[::5, ::5]).T, v)
    top, below = SampledTop(ROWS, Poisson()).split((jnp.zeros((3, 2)), jnp.asarray(v)))
    ours = top.log_likelihood(COVARIANCE, jnp.asarray(X), jnp.asarray(y), jnp.ones(()))
    assert len(below) == 1
    assert_allclose(ours, stats.poisson.logpmf(y, np.exp(f)).sum(), rtol=1e-7)


@pytest.mark.slow
def test_a_sampled_top_layer_has_the_moments_of_the_one_that_is_integrated_out():
    """Gaussian noise, where both are possible. Bounds: 4 standard errors over chains, and as many on the variance."""
    y, noise, chains = jnp.asarray(np.sin(3 * X)), 0.2, 400
    sampled, features = SampledTop(ROWS, GaussianNoise(noise)), jnp.asarray(X)

    def log_likelihood(position):
        def one(v):
            return sampled.split((v,))[0].log_likelihood(COVARIANCE, features, y, jnp.ones(()))

        return jax.vmap(one)(position[0])

    @eqx.filter_jit
    def run(key):
        start = (jr.normal(key, (chains, 6, 1)),)
        begun = Chains(start, log_likelihood(start), jnp.ones(()))
        return run_chains(EllipticalSlice(), begun, log_likelihood, key, num_steps=200, adapting=False)[0].position[0]

    def mean_at_rows(v):
        top = sampled.split((v,))[0].condition(COVARIANCE, features, y, jnp.ones(()))
        return top.predict(COVARIANCE, features[::7])[0][:, 0]

    draws = np.asarray(jax.vmap(mean_at_rows)(run(jr.key(0))))
    exact = SparseTop(ROWS).condition(COVARIANCE, features, y, jnp.asarray(noise))
    mean, variance = exact.predict(COVARIANCE, features[::7])
    left = sampled.split((jnp.zeros((6, 1)),))[0].condition(COVARIANCE, features, y, jnp.ones(()))
    explained = np.asarray(variance - left.predict(COVARIANCE, features[::7])[1])
    assert np.all(np.abs(draws.mean(axis=0) - mean[:, 0]) < 4 * np.sqrt(explained / chains))
    assert_allclose(draws.var(axis=0, ddof=1), explained, rtol=4 * np.sqrt(2 / chains))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chains")
@pytest.mark.parametrize("likelihood", [BernoulliLogit(), Poisson()], ids=["labels", "counts"])
def test_labels_and_counts(likelihood):
    rng = np.random.default_rng(0)
    x = np.linspace(-1, 1, 60)[:, None]
    rate = np.where(x < 0, 0.05, 0.95) if isinstance(likelihood, BernoulliLogit) else np.where(x < 0, 1.0, 6.0)
    y = rng.binomial(1, rate) if isinstance(likelihood, BernoulliLogit) else rng.poisson(rate)
    data = dgpax.dataset(x, y.astype(float))
    method = Stride(8, 8, hidden=FullySparse(), likelihood=likelihood, sampler=EllipticalSlice(), schedule=SHORT)
    fitted = dgpax.fit(Residual(), data, method, progress=False)
    moments = predict_moments(fitted, x)
    error = np.mean((moments.mean - rate) ** 2) / np.var(rate)
    assert error < 0.3
    assert np.all(moments.variance > 0)
    density = log_density(fitted, data)
    assert density.shape == (60,)
    assert np.mean(density) > np.mean(_constant_density(likelihood, y))
    assert fitted.report.details["exchanged"][-1] == 0
    assert np.isnan(fitted.report.details["bound"][-1])
    with pytest.raises(InputError, match="predict_moments"):
        dgpax.predict(fitted, x)


def _constant_density(likelihood, y):
    """Of a model that knows the mean of y and nothing else."""
    if isinstance(likelihood, BernoulliLogit):
        return stats.bernoulli.logpmf(y, np.mean(y))
    return stats.poisson.logpmf(y, np.mean(y))


def test_likelihoods_that_can_not_be_used():
    data = dgpax.dataset(X, np.sin(X))
    for message, method in (
        ("leave likelihood out", Stride(5, likelihood=GaussianNoise(0.1))),
        ("needs inducing points", Stride(None, likelihood=Poisson())),
        ("leave out one of noise_variance and likelihood", Stride(5, likelihood=Poisson(), noise_variance=0.1)),
    ):
        with pytest.raises(InputError, match=message):
            dgpax.fit(Residual(), data, method)
