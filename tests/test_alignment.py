"""Warped sequences: the bound against dense formulas, and what comes out of a fit."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from numpy.testing import assert_allclose
from reference import flow as reference

import dgpax
from dgpax.alignment import (
    DrawnLocations,
    FixedLocations,
    WarpedModel,
    WarpOutputs,
    align,
    default_engine,
    default_warp,
    fit_warped,
    pairwise_distance,
    warped_elbo,
)
from dgpax.alignment._bound import draw_warps, function_marginals
from dgpax.alignment._sequences import Sequences, scaling_of, table_of
from dgpax.errors import InputError, NumericalError, UnknownNameError
from dgpax.inference import Gradient
from dgpax.kernels import RBF
from dgpax.parameters import Real, find, fixed
from dgpax.warps import IntegralWarp

KNOTS = np.linspace(-1.0, 1.0, 9)
WARP = IntegralWarp(RBF(fixed(0.7), fixed(0.2)), KNOTS, fixed(0.01))
J, M, W = 2, 4, len(KNOTS) + 1
DISCREPANCY, NUGGET = 0.05, 1e-6
MODEL = WarpedModel(WARP, RBF(0.5, 1.3), np.array([0.1, 0.2]), DISCREPANCY)
TIMES = np.linspace(-1, 1, M) + np.array([[0.0], [0.05]])


def prior(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """cov(f_i(x_i), f_j(y_j)) for all i and j, from [J, A] and [J, B]."""
    blocks = [
        [reference.rbf(a, b, 0.5, 1.3) * (1 + DISCREPANCY * (i == j)) for j, b in enumerate(y)] for i, a in enumerate(x)
    ]
    return np.block(blocks)


def with_nugget(covariance: np.ndarray) -> np.ndarray:
    return covariance + NUGGET * np.diag(np.diag(covariance))


def some_posterior(word: str, rng: np.random.Generator) -> Any:
    def root(*shape: int) -> np.ndarray:
        return np.tril(0.2 * rng.normal(size=shape)) + 0.5 * np.eye(shape[-1])

    blocks = J if word == "mean-field" else 1
    warps = WarpOutputs(0.3 * rng.normal(size=(blocks, J * W // blocks)), root(blocks, *(J * W // blocks,) * 2))
    mean, own = rng.normal(size=J * M), root(J * M, J * M)
    if word == "points-as-locations":
        return DrawnLocations(warps, jnp.asarray(TIMES), mean, own)
    coupling = Real(0.3 * rng.normal(size=(J * M, J * W))) if word == "fully-coupled" else None
    return FixedLocations(warps, jnp.asarray(TIMES), mean, own, coupling)


def dense_root(posterior) -> np.ndarray:
    """Of all whitened inducing outputs, those of the warps first."""
    blocks = np.asarray(posterior.warps.root.value)
    warps = np.zeros((J * W, J * W))
    for index, block in enumerate(blocks):
        own = slice(index * len(block), (index + 1) * len(block))
        warps[own, own] = block
    coupling = np.zeros((J * M, J * W)) if posterior.coupling is None else np.asarray(posterior.coupling.value)
    return np.block([[warps, np.zeros((J * W, J * M))], [coupling, np.asarray(posterior.root.value)]])


@pytest.mark.slow
@pytest.mark.parametrize("word", ["mean-field", "fully-coupled"])
def test_kl_is_that_of_dense_gaussians(word, rng):
    """Of u = Root v, with a true log determinant."""
    posterior = some_posterior(word, rng)
    field = np.asarray(WARP.kernel.gram(jnp.asarray(KNOTS)[:, None]))
    scales = [np.block([[field, np.zeros((W - 1, 1))], [np.zeros((1, W - 1)), 0.01 * np.eye(1)]])] * J
    scales.append(with_nugget(prior(TIMES, TIMES)))
    K = np.zeros((J * (W + M),) * 2)
    start = 0
    for block in scales:
        K[start : start + len(block), start : start + len(block)] = block
        start += len(block)
    K += 1e-12 * np.mean(np.diag(K)) * np.eye(len(K))
    L = np.linalg.cholesky(K)
    mean = np.concatenate([np.asarray(posterior.warps.mean.value).reshape(-1), np.asarray(posterior.mean.value)])
    root = L @ dense_root(posterior)
    expected = reference.dense_kl(L @ mean, root @ root.T, K)
    terms = eqx.filter_jit(warped_elbo)(MODEL, posterior, data(), key=jr.key(0), num_samples=2)
    assert_allclose(terms.kl, expected, rtol=1e-8)


def test_kl_of_drawn_locations_is_the_dense_one_at_each_draw(rng):
    posterior = some_posterior("points-as-locations", rng)
    draw = eqx.filter_jit(draw_warps)(MODEL, posterior, J, jr.key(1))
    locations = np.asarray(draw.functions.locations)
    assert_allclose(locations, draw.warps(jnp.asarray(TIMES)), rtol=1e-12)
    root = np.asarray(posterior.root.value)
    expected = reference.dense_kl(np.asarray(posterior.mean.value), root @ root.T, with_nugget(prior(*[locations] * 2)))
    assert_allclose(posterior.functions_kl(draw.functions), expected, rtol=1e-8)


@pytest.mark.parametrize("word", ["fully-coupled", "points-as-locations"])
def test_functions_given_warps_are_conditional_gaussians(word, rng):
    """With the inducing outputs of one joint Gaussian, given those of the warps."""
    posterior, x = some_posterior(word, rng), rng.uniform(-1, 1, size=(J, 5))
    key = jr.key(2)

    @eqx.filter_jit
    def ours(posterior, x):
        draw = draw_warps(MODEL, posterior, J, key)
        return draw.functions.locations, function_marginals(MODEL, draw.functions, x)

    locations, q = ours(posterior, jnp.asarray(x))
    noise = np.asarray(jr.normal(jr.split(key)[0], (J, W))).reshape(-1)
    K, cross = with_nugget(prior(*[np.asarray(locations)] * 2)), prior(x, np.asarray(locations))
    L = np.linalg.cholesky(K)
    mean, root = np.asarray(posterior.mean.value), np.asarray(posterior.root.value)
    if word == "fully-coupled":
        mean, root = L @ (mean + np.asarray(posterior.coupling.value) @ noise), L @ root
    gain = np.linalg.solve(K, cross.T).T
    spread = gain @ root
    variance = np.diag(prior(x, x)) - np.sum(gain * cross, axis=1) + np.sum(spread**2, axis=1)
    assert_allclose(q.mean.reshape(-1), gain @ mean, atol=1e-9)
    assert_allclose(q.variance.reshape(-1), variance, atol=1e-9)


@pytest.mark.slow
def test_the_bound_of_warps_that_stand_still_is_that_of_regression(rng):
    """Σ log N(y; Am, σ²) − ½ variance / σ² − KL, missing rows left out."""
    posterior = some_posterior("mean-field", rng)
    still = WarpOutputs(np.zeros((J, W)), 1e-9 * np.broadcast_to(np.eye(W), (J, W, W)))
    posterior = FixedLocations(still, posterior.locations, posterior.mean, posterior.root)
    sequences = data()
    terms = eqx.filter_jit(warped_elbo)(MODEL, posterior, sequences, key=jr.key(0), num_samples=2)
    q = function_marginals(MODEL, draw_warps(MODEL, posterior, J, jr.key(0)).functions, sequences.t)
    noise = np.array([[0.1], [0.2]])
    squares = (np.asarray(sequences.y) - q.mean) ** 2 + q.variance
    expected = np.sum(np.where(sequences.observed, -0.5 * (squares / noise + np.log(2 * np.pi * noise)), 0.0))
    assert_allclose(terms.log_likelihood, expected, rtol=1e-7)


def data():
    t = np.linspace(0.0, 3.0, 12)
    table = table_of([(t, np.sin(t)), (t[:9], np.cos(t[:9]))])
    return Sequences.of(scaling_of(table).dataset(table))


def few_steps(max_steps: int = 4) -> Gradient:
    return Gradient(optimiser=optax.adam(0.01), max_steps=max_steps, steps_per_call=4)


def two_sequences(dtype=np.float64):
    t, s = np.linspace(0.0, 3.0, 12), np.sort(np.random.default_rng(0).uniform(0.2, 2.8, size=9))
    first, second = (t, np.sin(3 * t)), (s[:, None], np.sin(3 * s + 0.3))
    return [tuple(part.astype(dtype) for part in pair) for pair in (first, second)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_warps_functions_and_compositions_of_a_draw_belong_together(dtype):
    fitted = align(two_sequences(dtype), warp=WARP, num_inducing=6, num_samples=2, engine=few_steps())
    drawn = fitted.warped_draws(3, grid=np.linspace(-1.0, 4.0, 150))
    assert drawn.warps.dtype == drawn.functions.dtype == drawn.compositions.dtype == dtype
    assert drawn.warps.shape == (3, 2, 150)
    assert np.all(np.diff(drawn.warps) > 0)
    assert drawn.warps.std(axis=0).min() > 0
    inside = (np.asarray(drawn.warps) > -1) & (np.asarray(drawn.warps) < 4)
    for draw in range(3):
        for j in range(2):
            composed = np.interp(drawn.warps[draw, j], drawn.grid, drawn.functions[draw, j])
            off = np.abs(np.asarray(drawn.compositions)[draw, j] - composed)
            assert off[inside[draw, j]].max() < 0.02


@pytest.mark.slow
def test_sequences_that_differ_by_a_shift_are_aligned():
    t = np.linspace(-1.0, 1.0, 30)
    sequences = [(t, np.sin(4 * t)), (t, np.sin(4 * (t + 0.15)))]
    fitted = align(sequences, num_inducing=10, num_samples=3, engine=default_engine(600))
    drawn = fitted.warped_draws(20, grid=t)
    before = float(pairwise_distance(jnp.stack([jnp.asarray(y) for _, y in sequences])))
    assert np.max(pairwise_distance(drawn.functions)) < 0.2 * before
    assert fitted.report.history[-50:].mean() > fitted.report.history[:50].mean()


def test_pairwise_distance():
    functions = jnp.asarray([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]])
    assert_allclose(pairwise_distance(functions), (2 * np.sqrt(12.5) + 0.0) / 3, rtol=1e-12)


def test_one_sequence_is_refused():
    t = np.linspace(0, 1, 10)
    with pytest.raises(InputError, match="two or more sequences"):
        align([(t, np.sin(t))])


@pytest.mark.slow
def test_one_sequence_is_taken_by_fit_warped():
    t = np.linspace(0, 1, 10)
    fitted = fit_warped(t, np.sin(9 * t), "mean-field", warp=WARP, num_inducing=5, engine=few_steps())
    assert fitted.warped_draws(2).compositions.shape == (2, 1, 100)


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        ([(np.zeros((5, 2)), np.zeros(5))] * 2, "one input"),
        ([(np.arange(5), np.zeros(4))] * 2, "as many times as values"),
        ([(np.arange(5), [0, 1, np.nan, 2, 3])] * 2, "aren't finite"),
        ([(np.ones(5), np.zeros(5))] * 2, "one time only"),
        ([np.zeros(5)] * 2, r"pair \(t, y\)"),
        ([(["a", "b"], [1, 2])] * 2, "must hold numbers"),
    ],
)
def test_sequences_that_are_refused(sequences, message):
    with pytest.raises(InputError, match=message):
        align(sequences)


def test_what_else_is_refused():
    with pytest.raises(UnknownNameError, match="points-as-locations"):
        align(two_sequences(), "no-such-family")
    with pytest.raises(InputError, match="num_inducing"):
        align(two_sequences(), num_inducing=1)


@pytest.mark.slow
def test_steps_that_are_not_finite_end_in_an_error():
    with pytest.raises(NumericalError, match="not finite"):
        align(
            two_sequences(),
            "mean-field",
            warp=WARP,
            num_inducing=5,
            engine=Gradient(optimiser=optax.sgd(1e300), max_steps=12, steps_per_call=12),
        )


def test_the_default_warp_stands_still_at_zero():
    warp = default_warp()
    t = jnp.linspace(-1, 1, 20)
    still = eqx.filter_jit(lambda warp: warp.draw(jnp.zeros(warp.num_inducing), jnp.zeros(warp.num_noise))(t))(warp)
    assert_allclose(still, t, atol=1e-12)
    assert not any(parameter.trainable for parameter in find(warp).values())


@pytest.mark.slow
def test_fitted_sequences_predict_as_any_fit_does():
    """An output for each sequence; times by themselves, together, and drawn agree."""
    fitted = align(two_sequences(), warp=WARP, num_inducing=6, num_samples=2, engine=few_steps(), progress=False)
    t = np.array([[0.5], [1.5], [1.5]])
    prediction = dgpax.predict(fitted, t, num_samples=300)
    alone = dgpax.predict(fitted, t[1:2], num_samples=300)
    assert_allclose(prediction.mean[1], alone.mean[0], rtol=1e-9)
    latent = dgpax.predict_latent(fitted, t, num_samples=300)
    for over in ("outputs", "inputs", "both"):
        joint = dgpax.predict_jointly(fitted, t, over, num_samples=300)
        assert_allclose(joint.mean, latent.mean, rtol=1e-9)
        assert_allclose(joint.variance, latent.variance, rtol=1e-6, atol=1e-9)
    draws = np.asarray(dgpax.prediction.sample_jointly(fitted, t, num_samples=300))
    assert np.abs(draws[:, 1] - draws[:, 2]).max() < 1e-2 * latent.stddev.max()
    assert np.abs(draws.mean(axis=0) - latent.mean).max() < 5 * float(latent.stddev.max()) / np.sqrt(300)
    with pytest.raises(InputError, match="warped_draws"):
        dgpax.prediction.draw_functions(fitted)
