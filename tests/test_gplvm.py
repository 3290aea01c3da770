"""The Bayesian GP-LVM: its bound, its minibatches, what it finds, what it refuses."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from reference.gplvm import collapsed_bound, gaussian_kl, optimal_inducing_outputs, psi_statistics

import dgpax
from dgpax import DeepGP, GPLayer
from dgpax.data import Dataset, InMemory, outputs_only
from dgpax.errors import DgpaxWarning, InputError, MissingRuleError
from dgpax.inducing import Points
from dgpax.inference import Gradient, LatentInputs, NaturalGradient, Problem, Variational
from dgpax.kernels import RBF, Matern32
from dgpax.layers import LatentVariables
from dgpax.likelihoods import BernoulliLogit, GaussianNoise
from dgpax.objectives import elbo, latent_elbo
from dgpax.posteriors import InducingOutputs, MeanField, RowLatents, from_unwhitened
from dgpax.prediction import predict_uncertain

N, P, Q, M = 12, 3, 2, 5
RNG = np.random.default_rng(0)
MEAN, STDDEV = RNG.normal(size=(N, Q)), RNG.uniform(0.1, 1.0, size=(N, Q))
Y, Z = RNG.normal(size=(N, P)), RNG.normal(size=(M, Q))
LENGTHSCALE, VARIANCE, NOISE = np.array([0.7, 1.3]), 1.7, 0.3
GRAM = VARIANCE * np.exp(-0.5 * np.sum(((Z[:, None] - Z[None]) / LENGTHSCALE) ** 2, axis=-1))
DATA = outputs_only(Y)


def _model(kernel=None, likelihood=None, num_inputs: int = 0) -> DeepGP:
    kernel = RBF(LENGTHSCALE, VARIANCE) if kernel is None else kernel
    layer = GPLayer(kernel, P, inducing=Points(np.hstack([np.zeros((M, num_inputs)), Z])))
    return DeepGP((LatentVariables(Q), layer), GaussianNoise(NOISE) if likelihood is None else likelihood)


def _statistics():
    return psi_statistics(MEAN, STDDEV**2, Z, LENGTHSCALE, VARIANCE)


def _posterior() -> MeanField:
    """With the q(u) that is best for these q(w_n)."""
    mean, covariance = optimal_inducing_outputs(Y, GRAM, *_statistics()[1:], NOISE)
    root = np.tile(np.linalg.cholesky(covariance), (P, 1, 1))
    function = InducingOutputs(jnp.asarray(mean.T), jnp.asarray(root))
    return from_unwhitened((RowLatents(MEAN, STDDEV), function), _model().layers)


def _batches(data: Dataset, size: int) -> list[Dataset]:
    rows = np.arange(data.num_rows).reshape(-1, size)[:, ::-1]
    scale = data.num_rows / size
    return [dataclasses.replace(data.take(jnp.asarray(r)), rows=jnp.asarray(r), scale=scale) for r in rows]


bound = eqx.filter_jit(latent_elbo)


@pytest.mark.slow
def test_the_bound_against_the_collapsed_one():
    terms = bound(_model(), _posterior(), DATA)
    divergence = sum(gaussian_kl(m, np.diag(s**2)) for m, s in zip(MEAN, STDDEV, strict=True))
    np.testing.assert_allclose(terms.latent_kl, divergence, rtol=1e-12)
    np.testing.assert_allclose(terms.total, collapsed_bound(Y, GRAM, *_statistics(), NOISE) - divergence, rtol=1e-9)


@pytest.mark.parametrize("num_inputs", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_samples_agree_with_the_closed_form(num_inputs):
    """Also where latent variables stand beside inputs."""
    data = dataclasses.replace(DATA, x=jr.normal(jr.key(1), (N, num_inputs)))
    kernel = RBF(np.concatenate([np.ones(num_inputs), LENGTHSCALE]), VARIANCE)
    model, posterior, size = _model(kernel, num_inputs=num_inputs), _posterior(), 4000
    sampled = jax.jit(jax.vmap(lambda key: elbo(model, posterior, data, key=key).total))(jr.split(jr.key(2), size))
    error = float(np.std(sampled)) / size**0.5
    assert abs(float(np.mean(sampled)) - float(bound(model, posterior, data).total)) < 4 * error


def test_minibatches_average_to_the_whole():
    model, posterior = _model(), _posterior()
    parts = [float(bound(model, posterior, batch).total) for batch in _batches(DATA, 4)]
    np.testing.assert_allclose(np.mean(parts), bound(model, posterior, DATA).total, rtol=1e-10)
    assert np.std(parts) > 0.1


@pytest.mark.slow
def test_only_the_rows_of_the_batch_move(key):
    method, engine = LatentInputs(_posterior()), Gradient(optimiser=optax.sgd(1e-3))
    problem = Problem(method, method.target(_model(), DATA), InMemory(DATA, 5))
    state, _, _ = engine.advance(problem, engine.begin(problem, key), key, 0, 1)
    latents = problem.at(engine.result(state)).posterior.blocks[0]
    moved = np.any(np.asarray(latents.mean.value) != MEAN, axis=1)
    batch = dgpax.data.minibatch(DATA, jr.split(key)[0], 0, 5)
    np.testing.assert_array_equal(np.flatnonzero(moved), np.sort(batch.row_numbers()))


def test_missing_outputs_do_not_count():
    gaps = Y.copy()
    gaps[3, 1] = np.nan
    model, posterior = _model(), _posterior()
    parts = [
        bound(model, posterior, Dataset(DATA.x, jnp.asarray(y))) for y in (gaps, np.where(np.isnan(gaps), Y, np.nan))
    ]
    whole = bound(model, posterior, DATA).log_likelihood
    np.testing.assert_allclose(sum(float(part.log_likelihood) for part in parts), whole, rtol=1e-12)
    slope = eqx.filter_jit(eqx.filter_grad(lambda q: latent_elbo(model, q, outputs_only(gaps)).total))(posterior)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(slope))


def _curve(rows: int = 60):
    """A bent line in five dimensions, in units far from the model's."""
    t = np.sort(RNG.uniform(-1, 1, size=rows))
    clean = 50.0 + 20.0 * np.stack([np.sin(3 * t), np.cos(3 * t), t, t**2, np.exp(t)], axis=1)
    return t, clean, clean + 0.4 * np.random.default_rng(1).normal(size=clean.shape)


def _pca_errors(y, clean):
    """Mean squared error of one principal component of the standardised outputs."""
    centre, scale = y.mean(axis=0), y.std(axis=0)
    left, sizes, right = np.linalg.svd((y - centre) / scale, full_matrices=False)
    return np.mean((centre + scale * (left[:, :1] * sizes[0] @ right[:1]) - clean) ** 2)


def _reconstruction(fitted, data):
    positions = dgpax.latent_positions(fitted, data)
    return positions, predict_uncertain(dgpax.decoder(fitted), positions.mean, positions.variance)


@pytest.mark.slow
def test_a_curve_is_found_and_its_gaps_are_filled():
    t, clean, y = _curve()
    hidden = np.random.default_rng(2).random(y.shape) < 0.1
    start = dgpax.gplvm(np.where(hidden, np.nan, y), 1, 12)
    fitted = dgpax.fit(*start, engine=NaturalGradient(max_steps=400))
    positions, found = _reconstruction(fitted, start.data)
    assert np.mean((found.mean - clean)[~hidden] ** 2) < 0.05 * _pca_errors(y, clean)
    assert np.mean((found.mean - clean)[hidden] ** 2) < 0.1 * _pca_errors(y, clean)
    order = np.argsort(np.argsort(positions.mean[:, 0]))
    assert abs(np.corrcoef(order, np.arange(len(t)))[0, 1]) > 0.98


@pytest.mark.slow
def test_a_dimension_too_many_is_switched_off():
    start = dgpax.gplvm(_curve(100)[2], 3, 20)
    fitted = dgpax.fit(*start, engine=NaturalGradient(max_steps=400))
    lengthscale = fitted.model.layers[1].kernel.lengthscale.value
    positions = dgpax.latent_positions(fitted, start.data)
    influence = np.std(positions.mean, axis=0) / lengthscale
    assert lengthscale[2] > 3 * np.max(lengthscale[:2]) and influence[2] < 0.1 * np.min(influence[:2])


@pytest.mark.slow
def test_an_encoder_learns_from_minibatches_and_places_new_rows():
    _, clean, y = _curve(90)
    train, test = np.arange(90) % 3 > 0, np.arange(90) % 3 == 0
    start = dgpax.gplvm(y[train], 1, 12, encoder=True)
    feed = InMemory(start.data, 20)
    fitted = dgpax.fit(start.model, feed, start.method, engine=NaturalGradient(max_steps=600))
    _, found = _reconstruction(fitted, outputs_only(y[test]))
    assert np.mean((found.mean - clean[test]) ** 2) < 0.1 * _pca_errors(y, clean)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_where_it_starts(dtype):
    """At the principal components, by rows and by encoder, with the prior's variance, in the dtype of the data."""
    _, _, y = _curve()
    by_row, by_network = (dgpax.gplvm(y.astype(dtype), 2, 8, encoder=encoder) for encoder in (False, True))
    scaled = by_row.model.to_model_units(by_row.data)
    one, two = (start.method.target(start.model, scaled).posterior.latents(0, scaled) for start in (by_row, by_network))
    np.testing.assert_allclose(np.var(one.mean, axis=0), 1.0, rtol=1e-4)
    left, _, _ = np.linalg.svd(np.asarray(scaled.y, np.float64), full_matrices=False)
    assert np.all(np.abs(np.sum(left[:, :2] * one.mean, axis=0)) / len(y) ** 0.5 > 0.999)
    assert np.mean((one.mean - two.mean) ** 2) < 0.05
    np.testing.assert_allclose(one.stddev, two.stddev, rtol=1e-4)
    terms = bound(*by_row.method.target(by_row.model, scaled), scaled)
    assert {one.mean.dtype, two.mean.dtype, terms.total.dtype} == {np.dtype(dtype)}
    longer = by_row.model.layers[1].kernel.lengthscale.value
    assert longer[1] > longer[0]


def _at_start(start):
    """A fit that trains nothing."""
    method = dataclasses.replace(start.method, posterior=dgpax.freeze(start.method.posterior))
    return dgpax.fit(dgpax.freeze(start.model), start.data, method)


@pytest.mark.slow
def test_other_likelihoods_are_sampled():
    y = (RNG.normal(size=(20, 4)) > 0).astype(float)
    start = dgpax.gplvm(y, 1, 4, likelihood=BernoulliLogit())
    assert isinstance(start.method, Variational)
    fitted = _at_start(start)
    assert dgpax.latent_positions(fitted, start.data).mean.shape == (20, 1)
    assert np.isfinite(fitted.report.objective_end)
    moments = dgpax.prediction.predict_moments(dgpax.decoder(fitted), np.zeros((3, 1)))
    assert moments.mean.shape == (3, 4)


@pytest.mark.slow
def test_a_fitted_model_answers_for_its_rows_only():
    start = dgpax.gplvm(Y, 1, 4)
    fitted = _at_start(start)
    assert np.isfinite(fitted.report.objective_end) and fitted.num_inputs == 0
    some = dgpax.data.minibatch(start.data, jr.key(0), 0, 5)
    whole = dgpax.latent_positions(fitted, start.data)
    np.testing.assert_array_equal(dgpax.latent_positions(fitted, some).mean, whole.mean[some.row_numbers()])
    with pytest.raises(InputError, match="encoder=True"):
        dgpax.latent_positions(fitted, outputs_only(Y[:4]))
    with pytest.raises(InputError, match=r"fit\(\*gplvm\(y\)\)"):
        dgpax.decoder(dgpax.decoder(fitted))


def test_what_is_refused():
    for y, num_latents, message in [
        (Y, 0, "at least 1; got 0"),
        (Y, P + 1, "differ in 3. Use fewer latents"),
        (Y[:1], 1, r"1 row\(s\) of 3 output\(s\) differ in 0"),
        (np.ones((6, 3)), 1, "differ in 0"),
        (np.full((3, 2), np.nan), 1, "no output at all"),
        (np.zeros((0, 2)), 1, "minimum of 1"),
        (np.where(Y > 1, np.inf, Y), 1, "inf"),
    ]:
        with pytest.raises(InputError, match=message):
            dgpax.gplvm(y, num_latents)
    with pytest.warns(DgpaxWarning, match="12 distinct rows"):
        dgpax.gplvm(Y, 1)
    with pytest.raises(InputError, match=r"Variational\(num_samples"):
        latent_elbo(_model(likelihood=BernoulliLogit()), _posterior(), DATA)
    with pytest.raises(InputError, match="GPLayer and GaussianNoise"):
        latent_elbo(DeepGP(_model().layers[1], GaussianNoise()), _posterior(), DATA)
    with pytest.raises(MissingRuleError, match="Matern32"):
        latent_elbo(_model(Matern32()), _posterior(), DATA)
