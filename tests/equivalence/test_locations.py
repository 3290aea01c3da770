"""Inducing points as inducing locations: conditionals and the expected KL against dense matrices, bad input."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from parts import layer_inputs
from reference.coupled import dense_kl, dense_root
from reference.locations import conditional, log_normal, log_prior, prior
from scipy.linalg import block_diag

from dgpax import DeepGP, GPLayer, dataset, deep_gp, fit, predict
from dgpax.data import Dataset
from dgpax.errors import InputError
from dgpax.inducing import Points
from dgpax.inference import Gradient, Variational
from dgpax.kernels import LMC, RBF
from dgpax.layers import LatentVariables
from dgpax.likelihoods import GaussianNoise
from dgpax.means import Identity, Zero
from dgpax.objectives import elbo, importance_weighted_elbo, log_evidence, sampled_elbo
from dgpax.posteriors import LocationDraws, PointsAsLocations
from dgpax.prediction import predict_layers, sample_jointly
from dgpax.propagate import draw_noise, outputs_of

M, D = 4, 2
NUGGET = 1e-3
LAYERS = [(0.9, 1.3, 1.0), (1.1, 0.8, 1.0), (0.8, 1.1, 0.0)]
Z = np.random.default_rng(0).uniform(-1.5, 1.5, (M, D))


def _model(num_layers: int = 3) -> DeepGP:
    layers = [GPLayer(RBF(*LAYERS[i][:2]), D, Identity(), Points(Z)) for i in range(num_layers - 1)]
    last = GPLayer(RBF(*LAYERS[num_layers - 1][:2]), 1 if num_layers > 1 else 2, Zero(), Points(Z))
    return DeepGP([*layers, last], GaussianNoise(0.1))


def _posterior(model: DeepGP, structure: str = "fully-coupled", scale: float = 0.3) -> PointsAsLocations:
    start = PointsAsLocations.at_prior(model.layers, structure, nugget=NUGGET)
    q, keys = start.outputs, jr.split(jr.key(1), 3)
    outputs = dataclasses.replace(
        q,
        mean=q.mean.value + 0.3 * jr.normal(keys[0], q.mean.shape),
        root=scale * (0.5 * jnp.tril(jr.normal(keys[1], q.root.shape)) + jnp.eye(M)),
        coupling=0.5 * scale * jr.normal(keys[2], q.coupling.shape),
    )
    return eqx.tree_at(lambda p: p.outputs, start, outputs)


def _frames(posterior: PointsAsLocations) -> list[tuple[np.ndarray, np.ndarray]]:
    """The mean function and a Cholesky factor of the prior, at expected locations, of every layer."""
    locations, found = Z, []
    widths, expected = posterior.widths, np.asarray(posterior.outputs.mean.value)
    for index, v in enumerate(_split(expected, widths)):
        lengthscale, variance, slope = LAYERS[index]
        base = slope * locations.T if index < len(widths) - 1 else np.zeros_like(v)
        root = np.linalg.cholesky(prior(locations, lengthscale, variance, NUGGET))
        found.append((base, root))
        locations = (base + v @ root.T).T
    return found


def _outputs(posterior: PointsAsLocations, v) -> np.ndarray:
    """u [n, M] of coordinates v."""
    parts = zip(_frames(posterior), _split(np.asarray(v), posterior.widths), strict=True)
    return np.concatenate([base + own @ root.T for (base, root), own in parts])


def _dense(posterior: PointsAsLocations) -> tuple[np.ndarray, np.ndarray]:
    """Mean and root of q(u) over all processes in a row."""
    q, n = posterior.outputs, posterior.outputs.pattern.size
    pairs = zip(_frames(posterior), posterior.widths, strict=True)
    frame = block_diag(*(root for (_, root), width in pairs for _ in range(width)))
    return _outputs(posterior, q.mean.value).reshape(-1), frame @ dense_root(q.pattern.pairs, np.asarray(q.blocks()), n)


def _split(u: np.ndarray, widths) -> list[np.ndarray]:
    return np.split(u.reshape(-1, M), np.cumsum(widths)[:-1])


@pytest.fixture(scope="module")
def drawn():
    model = _model()
    posterior = _posterior(model)
    x, draws = jr.normal(jr.key(5), (3, D)), posterior.tractable(jr.key(2), (5,))
    assert isinstance(draws, LocationDraws)

    @eqx.filter_jit
    def forward(draws):
        carry = draws.begin(model.layers)
        given = layer_inputs(model.layers, draws, x, carry, draw_noise(model.layers, jr.key(3), 5, 3, x.dtype))
        marginals = [outputs_of(i, model.layers[i], draws, at, own).marginal() for i, (at, own) in enumerate(given)]
        return [at for at, _ in given], marginals, posterior.kl(model.layers, carry)

    return posterior, draws, *forward(draws)


def test_layers_are_conditioned_on_the_drawn_values_at_the_drawn_locations(drawn):
    posterior, draws, given, marginals, _ = drawn
    for s in range(5):
        values = _split(_outputs(posterior, draws.values[s]), posterior.widths)
        for index, (at, q) in enumerate(zip(given, marginals, strict=True)):
            x = np.asarray(at if at.ndim == 2 else at[s])
            locations = Z if index == 0 else values[index - 1].T
            mean, variance = conditional(x, locations, values[index], LAYERS[index], NUGGET)
            np.testing.assert_allclose(q.mean[s], mean, atol=1e-8)
            np.testing.assert_allclose(np.broadcast_to(variance[:, None], q.mean[s].shape), q.variance[s], atol=1e-8)


def test_the_kl_is_that_of_every_layer_given_those_before_averaged_over_draws(drawn):
    posterior, draws, _, _, found = drawn
    mean, root = _dense(posterior)
    total, ends = 0.0, M * np.cumsum(posterior.widths)
    for s in range(5):
        u, centres = (_outputs(posterior, v[s]).reshape(-1) for v in (draws.values, draws.centres))
        np.testing.assert_allclose(root @ np.linalg.solve(root, u - mean), u - mean, atol=1e-9)
        locations = Z
        for (lengthscale, variance, slope), end, width in zip(LAYERS, ends, posterior.widths, strict=True):
            own = slice(end - M * width, end)
            expected = mean[own] + root[own, : own.start] @ np.linalg.solve(root, u - mean)[: own.start]
            np.testing.assert_allclose(centres[own], expected, atol=1e-8)
            K = np.kron(np.eye(width), prior(locations, lengthscale, variance, NUGGET))
            rest = expected - (slope * locations.T.reshape(-1) if slope else 0.0)
            total += dense_kl(rest, root[own, own] @ root[own, own].T, K) / 5
            locations = u[own].reshape(width, M).T
    np.testing.assert_allclose(found, total, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["fully-coupled", "mean-field"])
def test_the_expected_kl_is_that_of_the_densities(structure):
    """40 × 500 draws against 20,000 draws of log q(u) − log p(u): within 4.5 standard errors of both together."""
    model = _model()
    posterior = _posterior(model, structure)

    @eqx.filter_jit
    def estimate(key):
        draws = posterior.layerwise(key, (500,))
        return posterior.kl(model.layers, draws.begin(model.layers)), draws.values

    found, values = zip(*(estimate(key) for key in jr.split(jr.key(3), 40)), strict=True)
    mean, root = _dense(posterior)
    covariance = root @ root.T
    brute = []
    q = posterior.outputs
    own = dense_root(q.pattern.pairs, np.asarray(q.blocks()), q.pattern.size)
    rest = (np.concatenate(values) - np.asarray(q.mean.value)).reshape(20_000, -1)
    for u in mean + np.linalg.solve(own, rest.T).T @ root.T:
        parts = _split(u, posterior.widths)
        brute.append(log_normal(u, mean, covariance) - log_prior(LAYERS, Z, parts, NUGGET))
    error = np.hypot(np.std(found) / np.sqrt(40), np.std(brute) / np.sqrt(20_000))
    assert abs(np.mean(found) - np.mean(brute)) < 4.5 * error


def test_matching_has_the_moments_of_the_draws():
    model = _model()
    values = np.random.default_rng(2).normal(size=(50, 5, M)) @ np.random.default_rng(3).normal(size=(M, M))
    draws = [jnp.asarray(np.swapaxes(u, 1, 2)) for u in np.split(values, [2, 4], axis=1)]
    posterior = eqx.filter_jit(lambda u: PointsAsLocations.matching(model.layers, u, nugget=NUGGET))(draws)
    mean, root = _dense(posterior)
    np.testing.assert_allclose(mean, values.mean(axis=0).reshape(-1), atol=1e-8)
    np.testing.assert_allclose(root @ root.T, np.cov(values.reshape(50, -1).T), rtol=1e-6, atol=1e-6)
    with pytest.raises(InputError, match="more than 20 draws"):
        PointsAsLocations.matching(model.layers, [u[:20] for u in draws])


def test_one_layer_is_gaussian_and_its_bound_below_the_evidence():
    model = _model(1)
    posterior = _posterior(model)
    data = Dataset(jr.normal(jr.key(6), (6, D)), jr.normal(jr.key(7), (6, 2)))
    mean, root = _dense(posterior)
    K = np.kron(np.eye(2), prior(Z, *LAYERS[0][:2], NUGGET))
    found = eqx.filter_jit(lambda p: elbo(model, p, data))(posterior)
    np.testing.assert_allclose(found.kl, dense_kl(mean, root @ root.T, K), rtol=1e-8)
    assert float(found.total) < float(log_evidence(model, data).total)


@pytest.mark.slow
def test_all_bounds_take_it_and_agree_on_average():
    """30 batches of 20 samples; the bounds differ by less than 4.5 standard errors."""
    model = _model(2)
    posterior = _posterior(model, scale=0.1)
    data = Dataset(jr.normal(jr.key(6), (6, D)), jr.normal(jr.key(7), (6, 1)))

    @eqx.filter_jit
    def bounds(key):
        objectives = (elbo, sampled_elbo, lambda *a, **k: importance_weighted_elbo(*a, **k, num_weights=1))
        return [objective(model, posterior, data, key=key, num_samples=20).total for objective in objectives]

    found = np.array([bounds(key) for key in jr.split(jr.key(9), 30)])
    errors = found.std(axis=0) / np.sqrt(29)
    assert np.all(np.abs(found.mean(axis=0) - found[:, 0].mean()) < 4.5 * np.hypot(errors, errors[0]))


@pytest.mark.slow
@pytest.mark.parametrize("num_inducing", [15, 60])
def test_it_learns_by_default(num_inducing):
    """As many inducing points as rows too, whose values hang together closely."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (60, 1))
    data = dataset(x, np.sin(2 * x) + 0.1 * rng.normal(size=x.shape))
    fitted = fit(deep_gp(data, 2, num_inducing), data, Variational("points-as-locations"), progress=False)
    rest = np.asarray(predict(fitted, x).mean) - np.asarray(data.y)
    assert 1.0 - np.mean(rest**2) / np.var(np.asarray(data.y)) > 0.9


@pytest.mark.slow
def test_it_trains_by_its_word_and_predicts():
    x = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    data = dataset(x, np.sin(3 * x[:, :1]) * x[:, 1:])
    model = deep_gp(data, 2, 8, width=2)
    fitted = fit(model, data, Variational("points-as-locations", num_samples=3), engine=Gradient(max_steps=600))
    assert isinstance(fitted.posterior, PointsAsLocations)
    assert fitted.report.objective_end > fitted.report.objective_start
    q = predict(fitted, x, num_samples=50)
    assert q.mean.shape == (40, 1) and np.all(np.isfinite(q.variance))
    assert np.sqrt(np.mean((np.asarray(q.mean) - np.asarray(data.y)) ** 2)) < 0.2
    first, last = predict_layers(fitted, x, num_samples=20)
    assert first.mean.shape == (40, 2) and last.mean.shape == (40, 1)
    assert sample_jointly(fitted, x, num_samples=7).shape == (7, 40, 1)


def test_bad_input():
    layer = _model(1).layers[0]
    with pytest.raises(InputError, match="no inducing variables"):
        PointsAsLocations.at_prior((GPLayer(RBF(), 1),))
    separate = GPLayer(RBF(), 2, inducing=Points(np.stack([Z, Z + 1])))
    with pytest.raises(InputError, match=r"shape \(M, D\) in the first layer"):
        PointsAsLocations.at_prior((separate, layer))
    with pytest.raises(InputError, match="layer 0 is LatentVariables"):
        PointsAsLocations.at_prior((LatentVariables(), layer))
    mixed = GPLayer(LMC(RBF(), jnp.ones((2, 1))), 2, inducing=Points(Z))
    with pytest.raises(InputError, match="layer 0 has LMC"):
        PointsAsLocations.at_prior((mixed, layer))
    model = _model(2)
    posterior = _posterior(model)
    with pytest.raises(InputError, match="Draw them first"):
        posterior.kl(model.layers, posterior.begin(model.layers))
    with pytest.raises(InputError, match="Draw them first"):
        posterior.inducing(1, model.layers[1], posterior.begin(model.layers))
