"""Deep models: their limits, their integrals, their derivatives."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from reference.regression import dense_gp_marginal

from dgpax import DeepGP, GPLayer
from dgpax.data import Dataset
from dgpax.inducing import Points
from dgpax.kernels import LMC, RBF, White
from dgpax.layers import Append, LatentVariables
from dgpax.likelihoods import GaussianNoise
from dgpax.linalg import gauss_hermite
from dgpax.means import Identity
from dgpax.objectives import elbo, importance_weighted_elbo
from dgpax.parameters import Positive, combine, partition
from dgpax.posteriors import Encoder, GaussianBlock, MeanField, RowLatents
from dgpax.propagate import draw_noise, propagate

M, N = 4, 6


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(N, 1))
    return Dataset(jnp.asarray(x), jnp.asarray(np.sin(3 * x) + 0.1 * rng.normal(size=(N, 1))))


def _layer(mean=None, outputs=1, inputs=1, seed=0, noise=0.0):
    z = jnp.asarray(np.random.default_rng(seed).uniform(-1, 1, size=(M, inputs)))
    kernel = RBF(0.8, 0.6) + White(noise) if noise else RBF(0.8, 0.6)
    return GPLayer(kernel, outputs, *([] if mean is None else [mean]), inducing=Points(z))


def _block(seed, outputs=1, scale=0.5):
    key_mean, key_root = jr.split(jr.key(seed))
    return GaussianBlock(jr.normal(key_mean, (outputs, M)), scale * jnp.tril(jr.normal(key_root, (outputs, M, M))))


def _two_layers():
    layers = (_layer(Identity(), seed=1), _layer(seed=2))
    return DeepGP(layers, GaussianNoise(0.2)), MeanField((_block(3), _block(4)))


def test_one_layer_is_the_sparse_gp_written_out(data):
    layer, posterior = _layer(), MeanField((_block(5),))
    model = DeepGP(layer, GaussianNoise(0.2))
    block, z = posterior.blocks[0], np.asarray(model.layers[0].inducing.locations.value)
    mean, variance, kl = dense_gp_marginal(
        np.asarray(data.x), z, 0.8, 0.6, np.asarray(block.mean.value[0]), np.asarray(block.root.value[0])
    )
    q = propagate(model.layers, posterior, data.x, posterior.begin(model.layers)).marginal()
    np.testing.assert_allclose(q.mean[:, 0], mean, atol=1e-10)
    np.testing.assert_allclose(q.variance[:, 0], variance, atol=1e-10)
    y = np.asarray(data.y[:, 0])
    expected = np.sum(-0.5 * np.log(2 * np.pi * 0.2) - 0.5 * ((y - mean) ** 2 + variance) / 0.2) - kl
    np.testing.assert_allclose(elbo(model, posterior, data).total, expected, atol=1e-10)
    density = -0.5 * np.log(2 * np.pi * (0.2 + variance)) - 0.5 * (y - mean) ** 2 / (0.2 + variance)
    np.testing.assert_allclose(model.likelihood.predictive_log_prob(q, data.y), density, atol=1e-10)


def test_an_identity_without_spread_changes_nothing(data):
    inner = GPLayer(RBF(0.8, Positive(1e-14, floor=0.0)), 1, Identity(), _layer(seed=1).own_inducing())
    last, block = _layer(seed=2), _block(4)
    deep, shallow = DeepGP((inner, last), GaussianNoise(0.2)), DeepGP(last, GaussianNoise(0.2))
    prior = GaussianBlock(jnp.zeros((1, M)), jnp.eye(M)[None])
    a = elbo(deep, MeanField((prior, block)), data, key=jr.key(0), num_samples=3).total
    np.testing.assert_allclose(a, elbo(shallow, MeanField((block,)), data).total, atol=1e-6)


def test_sampled_bound_agrees_with_quadrature(data):
    model, posterior = _two_layers()
    nodes, weights = gauss_hermite(100)
    carry = posterior.begin(model.layers)
    noise = (jnp.broadcast_to(nodes[:, None, None], (100, N, 1)),)
    q = propagate(model.layers, posterior, data.x, carry, noise).marginal()
    per_row = jnp.sum(weights[:, None] * model.likelihood.expected_log_prob(q, data.y), axis=0)
    exact = float(jnp.sum(per_row) - posterior.kl(model.layers, carry))

    @jax.jit
    def draws(keys):
        return jax.vmap(lambda key: elbo(model, posterior, data, key=key).total)(keys)

    values = np.asarray(draws(jr.split(jr.key(1), 20_000)))
    assert abs(values.mean() - exact) < 4 * values.std() / np.sqrt(len(values))


@pytest.mark.slow
def test_gradients_agree_with_finite_differences(data):
    model, posterior = _two_layers()
    trainable, rest = partition((model, posterior))

    @jax.jit
    def value(trainable):
        return elbo(*combine(trainable, rest), data, key=jr.key(2), num_samples=2).total

    gradient = jax.jit(jax.grad(value))(trainable)
    leaves, tree = jax.tree.flatten(trainable)
    rng = np.random.default_rng(0)
    for _ in range(5):
        step = [jnp.asarray(rng.normal(size=leaf.shape)) for leaf in leaves]
        up, down = (
            value(jax.tree.unflatten(tree, [a + sign * 1e-5 * b for a, b in zip(leaves, step, strict=True)]))
            for sign in (1, -1)
        )
        slope = sum(float(jnp.sum(a * b)) for a, b in zip(jax.tree.leaves(gradient), step, strict=True))
        np.testing.assert_allclose((up - down) / 2e-5, slope, rtol=1e-6, atol=1e-6)


def _latent_model(rows):
    layers = (
        LatentVariables(1),
        _layer(Identity(), 2, 2, seed=6, noise=0.01),
        Append(),
        _layer(inputs=3, seed=7),
    )
    latents = RowLatents(jr.normal(jr.key(1), (rows, 1)), jnp.full((rows, 1), 0.7))
    return DeepGP(layers, GaussianNoise(0.2)), MeanField((latents, _block(8, 2, 0.1), None, _block(9)))


@pytest.mark.slow
def test_importance_weights_tighten_the_bound(data):
    model, posterior = _latent_model(N)

    @eqx.filter_jit
    def mean_and_error(num_weights):
        def one(key):
            return importance_weighted_elbo(model, posterior, data, key=key, num_weights=num_weights).total

        values = jax.lax.map(one, jr.split(jr.key(3), 4000), batch_size=500)
        return jnp.mean(values), jnp.std(values) / jnp.sqrt(values.size)

    values = jax.jit(jax.vmap(lambda key: elbo(model, posterior, data, key=key).total))(jr.split(jr.key(4), 20_000))
    bounds = {k: mean_and_error(k) for k in (1, 4, 16)}
    error = float(jnp.hypot(bounds[1][1], jnp.std(values) / jnp.sqrt(values.size)))
    assert abs(float(bounds[1][0] - jnp.mean(values))) < 4 * error
    for fewer, more in ((1, 4), (4, 16)):
        gain = float(bounds[more][0] - bounds[fewer][0])
        assert gain > 4 * float(jnp.hypot(bounds[more][1], bounds[fewer][1]))


def test_weights_gain_nothing_without_latent_variables(data):
    model, posterior = _two_layers()

    @jax.jit
    def bounds(keys):
        return [
            jax.vmap(lambda k, w=w: importance_weighted_elbo(model, posterior, data, key=k, num_weights=w).total)(keys)
            for w in (1, 5)
        ]

    one, five = (np.asarray(values) for values in bounds(jr.split(jr.key(5), 4000)))
    error = np.hypot(one.std(), five.std()) / np.sqrt(len(one))
    assert abs(one.mean() - five.mean()) < 4 * error


@pytest.mark.slow
def test_latent_variables_by_row_number(data):
    _, posterior = _latent_model(N)
    rows = jnp.array([4, 1])
    whole = posterior.latents(0, data)
    some = posterior.latents(0, Dataset(data.x[rows], data.y[rows], rows=rows))
    np.testing.assert_array_equal(some.mean, whole.mean[rows])
    encoder = Encoder.start(1, 1, 2, jr.key(0))
    np.testing.assert_allclose(encoder(data).mean, 0.0)
    np.testing.assert_allclose(encoder(data).variance, 1.0)


def test_mixed_outputs_are_drawn_together():
    W = jnp.array([[1.0], [2.0]])
    inner = GPLayer(LMC(RBF(0.8), W), 2, inducing=Points(jnp.linspace(-1, 1, M)[:, None]))
    layers = (inner, _layer(inputs=2))
    posterior = MeanField((_block(1), _block(2)))
    noise = draw_noise(layers, jr.key(0), 3, N, jnp.float64)
    assert noise[0] is not None and noise[0].shape == (3, N, 1)
    x = jnp.linspace(-1, 1, N)[:, None]
    seen = []

    def record(x):
        seen.append(np.asarray(x))
        return jnp.zeros((*x.shape[:-1], 1))

    spied = eqx.tree_at(lambda layer: layer.mean, layers[1], record, is_leaf=lambda node: node is layers[1].mean)
    propagate((inner, spied), posterior, x, posterior.begin(layers), noise).marginal()
    np.testing.assert_allclose(seen[0][..., 1], 2 * seen[0][..., 0], rtol=1e-12)
