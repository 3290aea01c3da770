"""Sparse variational GPs: the exact limits, natural gradients, minibatches."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import dgpax
from dgpax import DeepGP, GPLayer
from dgpax.data import Dataset
from dgpax.inducing import Points
from dgpax.inference import Gradient, NaturalGradient, Variational
from dgpax.kernels import RBF, Matern32
from dgpax.likelihoods import BernoulliLogit, GaussianNoise, Poisson
from dgpax.linalg import half_tril
from dgpax.objectives import collapsed_bound, elbo, log_evidence
from dgpax.parameters import freeze
from dgpax.posteriors import (
    ExactPosterior,
    GaussianBlock,
    MeanField,
    optimal_posterior,
)
from dgpax.propagate import outputs_of, propagate

pytestmark = pytest.mark.slow

P = 2


@pytest.fixture
def data(rng):
    x = rng.uniform(-2, 2, size=(24, 1))
    y = np.concatenate([np.sin(3 * x), np.cos(2 * x)], axis=1) + 0.1 * rng.normal(size=(24, 2))
    return Dataset(jnp.asarray(x), jnp.asarray(y))


def _model(z, noise=0.05):
    return DeepGP(GPLayer(Matern32(0.6, 1.2), P, inducing=Points(jnp.asarray(z))), GaussianNoise(noise))


def _random_posterior(M, seed=0):
    key_mean, key_root = jr.split(jr.key(seed))
    root = jnp.tril(jr.normal(key_root, (P, M, M))) * 0.3 + jnp.eye(M)
    return MeanField((GaussianBlock(jr.normal(key_mean, (P, M)), root),))


def test_at_the_optimum_with_all_points_it_is_exact_regression(data):
    model = _model(data.x)
    q, exact = optimal_posterior(model, data), ExactPosterior.condition(model, data)
    np.testing.assert_allclose(elbo(model, q, data).total, log_evidence(model, data).total, atol=1e-8)
    x = jnp.linspace(-3, 3, 11)[:, None]
    for index in range(2):
        a, b = (outputs_of(0, model.layers[0], p, x, p.begin(model.layers)).over_inputs() for p in (q, exact))
        np.testing.assert_allclose(a.mean, b.mean, atol=1e-8)
        np.testing.assert_allclose(a.covariance[index], b.covariance[index], atol=1e-8)


def _gradient(model, q, data):
    return jax.grad(lambda posterior: -elbo(model, posterior, data).total)(q)


def _step(q, gradient, rate):
    (block,), (slope,) = q.blocks, gradient.blocks
    return MeanField((block.natural_step(slope, rate),))


def _classical_step(q, gradient, rate):
    """In natural parameters, S⁻¹ ← S⁻¹ + 2·rate·∂loss/∂S [Hensman et al. 2013; Salimbeni et al. 2018]: with Φ the lower
    triangle of RᵀG, its diagonal halved, S⁻¹ = R⁻ᵀ(I + rate·(Φ + Φᵀ))R⁻¹."""
    (block,), (slope,) = q.blocks, gradient.blocks
    R, G = block.root.value, jnp.tril(slope.root.raw)
    local = half_tril(R.mT @ G)
    S = R @ jnp.linalg.solve(jnp.eye(R.shape[-1]) + rate * (local + local.mT), R.mT)
    mean = block.mean.value - rate * (S @ slope.mean.raw[..., None])[..., 0]
    return MeanField((GaussianBlock(mean, jnp.linalg.cholesky(S)),))


def test_one_classical_natural_step_of_rate_one_is_the_optimum(data):
    model = _model(np.linspace(-2, 2, 6)[:, None])
    start, best = _random_posterior(6), optimal_posterior(model, data)
    moved = _classical_step(start, _gradient(model, start, data), 1.0)
    np.testing.assert_allclose(moved.blocks[0].mean.value, best.blocks[0].mean.value, atol=1e-8)
    S, S_best = (r @ jnp.swapaxes(r, -1, -2) for r in (moved.blocks[0].root.value, best.blocks[0].root.value))
    np.testing.assert_allclose(S, S_best, atol=1e-8)
    np.testing.assert_allclose(elbo(model, moved, data).total, collapsed_bound(model, data).total, atol=1e-8)


def test_the_block_step_converges_to_the_same_optimum(data):
    model = _model(np.linspace(-2, 2, 6)[:, None])
    q, best = _random_posterior(6), optimal_posterior(model, data)

    @jax.jit
    def advance(q):
        return _step(q, _gradient(model, q, data), 0.5)

    bound = [float(elbo(model, q, data).total)]
    for _ in range(200):
        q = advance(q)
    bound.append(float(elbo(model, q, data).total))
    np.testing.assert_allclose(bound[1], collapsed_bound(model, data).total, atol=1e-8)
    np.testing.assert_allclose(q.blocks[0].mean.value, best.blocks[0].mean.value, atol=1e-7)


def test_both_steps_agree_to_first_order(data):
    model, q = _model(np.linspace(-2, 2, 6)[:, None]), _random_posterior(6)
    gradient, rate = _gradient(model, q, data), 1e-6
    block, classical = _step(q, gradient, rate), _classical_step(q, gradient, rate)
    for a, b, start in zip(*(jax.tree.leaves(tree) for tree in (block, classical, q)), strict=True):
        change = jnp.max(jnp.abs(a - start))
        assert float(jnp.max(jnp.abs(a - b))) < 1e-3 * float(change)


def test_minibatches_average_to_the_full_bound(data):
    small = Dataset(data.x[:6], data.y[:6])
    model, q = _model(np.linspace(-2, 2, 4)[:, None]), _random_posterior(4)
    values = [
        elbo(model, q, Dataset(small.x[jnp.array(rows)], small.y[jnp.array(rows)], scale=6 / 3)).total
        for rows in combinations(range(6), 3)
    ]
    np.testing.assert_allclose(np.mean(values), elbo(model, q, small).total, atol=1e-10)


def test_missing_outputs_add_nothing(data):
    model, q = _model(np.linspace(-2, 2, 5)[:, None]), _random_posterior(5)
    y = data.y.at[3, 0].set(jnp.nan).at[7, 1].set(jnp.nan)
    with_missing = Dataset(data.x, y)
    value, gradient = jax.value_and_grad(lambda p: elbo(model, p, with_missing).total)(q)
    marginal = propagate(model.layers, q, data.x, q.begin(model.layers)).marginal()
    observed = ~jnp.isnan(y)
    noise = 0.05
    residual = jnp.where(observed, y, 0.0) - marginal.mean
    terms = -0.5 * (jnp.log(2 * jnp.pi * noise) + (residual**2 + marginal.variance) / noise)
    expected = jnp.sum(jnp.where(observed, terms, 0.0)) - q.kl(model.layers, q.begin(model.layers))
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(gradient))


def test_fitting_with_natural_gradients_reaches_the_collapsed_bound(data):
    model = freeze(_model(np.linspace(-2, 2, 6)[:, None]))
    engine = NaturalGradient(natural_rate=0.5, ramp_steps=1, max_steps=100)
    fitted = dgpax.fit(model, data, "variational", engine=engine)
    np.testing.assert_allclose(fitted.report.objective_end, collapsed_bound(model, data).total, atol=1e-6)


@pytest.mark.parametrize("engine", [NaturalGradient, Gradient], ids=["natural", "adam"])
def test_other_likelihoods_are_learnt(engine, rng):
    x = rng.uniform(-2, 2, size=(80, 1))
    rate = 1.0 / (1.0 + np.exp(-4 * np.sin(2 * x)))
    for likelihood, y in ((BernoulliLogit(), rng.binomial(1, rate)), (Poisson(), rng.poisson(3 * rate))):
        data = dgpax.dataset(x, y.astype(float))
        model = DeepGP(GPLayer(RBF(0.8), inducing=Points(jnp.linspace(-2, 2, 8)[:, None])), likelihood)
        settings: dict[str, Any] = {"natural_rate": 0.3} if engine is NaturalGradient else {}
        fitted = dgpax.fit(
            model, data, Variational(), engine=engine(optimiser=optax.adam(0.02), max_steps=300, **settings)
        )
        q = propagate(
            fitted.model.layers, fitted.posterior, data.x, fitted.posterior.begin(fitted.model.layers)
        ).marginal()
        expected = 3 * rate if isinstance(likelihood, Poisson) else rate
        error = np.mean(np.abs(np.asarray(likelihood.predictive_mean(q)).reshape(80, -1)[:, -1:] - expected))
        assert error < 0.25 * np.std(expected) + 0.1
