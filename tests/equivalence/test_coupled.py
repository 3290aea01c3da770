"""Coupled posteriors: Theorem 1 of STAR against brute force, and the families that are special cases of each other."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from parts import layer_inputs
from reference.coupled import condition, dense_kl, dense_root, layer_rows, rbf
from scipy import stats
from scipy.linalg import block_diag

from dgpax import DeepGP, GPLayer
from dgpax.data import Dataset
from dgpax.inducing import Points
from dgpax.kernels import RBF
from dgpax.likelihoods import GaussianNoise
from dgpax.linalg import BlockPattern
from dgpax.means import Zero
from dgpax.objectives import elbo
from dgpax.posteriors import (
    Coupled,
    GaussianBlock,
    MeanField,
    Particles,
    coupled_from_unwhitened,
    coupled_to_unwhitened,
    natural_block_step,
    natural_step,
)
from dgpax.propagate import draw_noise, outputs_of, propagate

M, N, D = 4, 3, 2
WIDTHS = {2: (3, 2), 3: (2, 3, 1), 4: (3, 1, 2, 2)}
STRUCTURES = ("mean-field", "layer-wise", "stripes-and-arrow", "fully-coupled", "own")


def _model(widths) -> DeepGP:
    layers, num_inputs = [], D
    for index, width in enumerate(widths):
        z = jr.uniform(jr.key(10 + index), (M, num_inputs), minval=-1.5, maxval=1.5)
        layers.append(GPLayer(RBF(0.8 + 0.1 * index, 1.0 + 0.2 * index), width, Zero(), Points(z)))
        num_inputs = width
    return DeepGP(layers, GaussianNoise(0.1))


def _structure(name: str, widths) -> str | np.ndarray:
    if name != "own":
        return name
    size = sum(widths)
    return np.tril(np.random.default_rng(0).random((size, size)) < 0.5)


def _posterior(model: DeepGP, structure, seed: int = 0) -> Coupled:
    start = Coupled.at_prior(model.layers, structure)
    q, keys = start.outputs, jr.split(jr.key(seed), 3)
    eye = jnp.eye(q.mean.shape[-1])
    outputs = dataclasses.replace(
        q,
        mean=jr.normal(keys[0], q.mean.shape),
        root=0.5 * jnp.tril(jr.normal(keys[1], q.root.shape)) + eye,
        coupling=0.5 * jr.normal(keys[2], q.coupling.shape),
    )
    return eqx.tree_at(lambda p: p.outputs, start, outputs)


def _dense(posterior: Coupled) -> tuple[np.ndarray, np.ndarray]:
    q = posterior.outputs
    root = dense_root(q.pattern.pairs, np.asarray(q.blocks()), q.pattern.size)
    return np.asarray(q.mean.value).reshape(-1), root @ root.T


def _as_numbers(model: DeepGP):
    return [
        (
            np.asarray(layer.own_inducing().locations.value),
            float(layer.kernel.lengthscale.value),
            float(layer.kernel.variance.value),
            layer.num_outputs,
        )
        for layer in model.layers
    ]


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize(
    "num_layers", [pytest.param(2, marks=pytest.mark.slow), 3, pytest.param(4, marks=pytest.mark.slow)]
)
def test_every_layer_given_the_others_is_brute_force_conditioning(num_layers, structure):
    widths = WIDTHS[num_layers]
    model = _model(widths)
    posterior = _posterior(model, _structure(structure, widths))
    x = jr.normal(jr.key(1), (N, D))

    @eqx.filter_jit
    def forward(x):
        noise = draw_noise(model.layers, jr.key(2), 2, N, x.dtype)
        given = layer_inputs(model.layers, posterior, x, posterior.begin(model.layers), noise)
        joints = [
            outputs_of(i, model.layers[i], posterior, at, carry).over_outputs() for i, (at, carry) in enumerate(given)
        ]
        alone = [outputs_of(i, model.layers[i], posterior, at, carry).marginal() for i, (at, carry) in enumerate(given)]
        return [at for at, _ in given], joints, alone

    given, joints, alone = forward(x)
    mean, covariance = _dense(posterior)
    for s in range(2):
        for n in range(N):
            inputs = [np.asarray(at[n] if at.ndim == 2 else at[s, n]) for at in given]
            for index, (joint, one) in enumerate(zip(joints, alone, strict=True)):
                m, S = layer_rows(mean, covariance, _as_numbers(model)[: index + 1], inputs)
                wanted_mean, wanted_covariance = condition(m, S, np.concatenate([np.zeros(0), *inputs[1 : index + 1]]))
                at = (n,) if joint.mean.ndim == 2 else (s, n)
                np.testing.assert_allclose(joint.mean[at], wanted_mean, atol=1e-8)
                np.testing.assert_allclose(joint.covariance[at], wanted_covariance, atol=1e-8)
                np.testing.assert_allclose(one.mean[at], wanted_mean, atol=1e-8)
                np.testing.assert_allclose(one.variance[at], np.diag(wanted_covariance), atol=1e-8)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_kl_is_the_dense_one(structure):
    model = _model(WIDTHS[3])
    posterior = _posterior(model, _structure(structure, WIDTHS[3]))
    mean, covariance = _dense(posterior)
    found = eqx.filter_jit(lambda p: p.kl(model.layers, p.begin(model.layers)))(posterior)
    np.testing.assert_allclose(found, dense_kl(mean, covariance, np.eye(len(mean))), rtol=1e-10)


@pytest.mark.parametrize("structure", ["stripes-and-arrow", "fully-coupled"])
def test_unwhitened_is_whitened(structure):
    """KL and conditional means in terms of u = L v, with k(x, Z) K⁻¹ in place of A; and the way back."""
    model = _model(WIDTHS[3])
    posterior = _posterior(model, structure)
    outputs = eqx.filter_jit(coupled_to_unwhitened)(posterior, model.layers)
    pattern = posterior.outputs.pattern
    root = dense_root(pattern.pairs, np.asarray(outputs.blocks), pattern.size)
    mean, covariance = np.asarray(outputs.mean).reshape(-1), root @ root.T
    layers = _as_numbers(model)
    prior = np.asarray(block_diag(*(rbf(z, z, a, b) for z, a, b, width in layers for _ in range(width))))
    kl = eqx.filter_jit(lambda p: p.kl(model.layers, p.begin(model.layers)))(posterior)
    np.testing.assert_allclose(kl, dense_kl(mean, covariance, prior), rtol=1e-8)
    x = np.array([0.3, -0.2])
    z, a, b, width = layers[0]
    gain = np.linalg.solve(rbf(z, z, a, b), rbf(z, x[None], a, b))[:, 0]
    q = _first_layer(model, posterior, x)
    np.testing.assert_allclose(q.mean[0], mean.reshape(pattern.size, M)[:width] @ gain, atol=1e-8)
    own = covariance.reshape(pattern.size, M, pattern.size, M)[:width, :, :width]
    spread = np.einsum("imjn,m,n->ij", own, gain, gain)
    rest = b - gain @ rbf(z, x[None], a, b)[:, 0]
    np.testing.assert_allclose(q.covariance[0], spread + rest * np.eye(width), atol=1e-8)
    back = eqx.filter_jit(coupled_from_unwhitened)(outputs, posterior, model.layers)
    for ours, wanted in zip(jax.tree.leaves(back), jax.tree.leaves(posterior), strict=True):
        np.testing.assert_allclose(ours, wanted, atol=1e-8)


def _first_layer(model, posterior, x):
    carry = posterior.begin(model.layers)
    return outputs_of(0, model.layers[0], posterior, jnp.asarray(x)[None], carry).over_outputs()


def test_drawn_inducing_outputs_have_the_moments_of_q():
    """100,000 draws; every mean within 5 of its standard errors (28 numbers: a false alarm in 60,000)."""
    model = _model(WIDTHS[3])
    posterior = _posterior(model, "stripes-and-arrow")
    particles = posterior.layerwise(jr.key(3), (100_000,))
    draws = jnp.concatenate([block.reshape(100_000, -1) for block in particles.blocks], axis=1)
    mean, covariance = _dense(posterior)
    errors = np.sqrt(np.diag(covariance) / 100_000)
    assert np.max(np.abs(np.mean(draws, axis=0) - mean) / errors) < 5
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.max(np.abs(np.cov(draws.T) - covariance) / scale) < 0.025


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["stripes-and-arrow", "fully-coupled"])
def test_marginalised_draws_are_draws_with_sampled_inducing_outputs(structure):
    """Kolmogorov-Smirnov on 100,000 draws of the last layer each, for two rows and two outputs: p > 0.001."""
    model = _model((2, 2, 2))
    posterior, x = _posterior(model, structure), jnp.array([[0.3, -0.4], [2.0, 1.0]])

    @eqx.filter_jit
    def draws(posterior, key):
        key_noise, key_last = jr.split(key)
        noise = draw_noise(model.layers, key_noise, 100_000, len(x), x.dtype)
        q = propagate(model.layers, posterior, x, posterior.begin(model.layers), noise).marginal()
        return q.mean + q.stddev * jr.normal(key_last, q.mean.shape)

    marginalised = np.asarray(draws(posterior, jr.key(5)))
    sampled = np.asarray(draws(posterior.layerwise(jr.key(6), (100_000,)), jr.key(7)))
    for n in range(len(x)):
        for p in range(2):
            test = stats.ks_2samp(marginalised[:, n, p], sampled[:, n, p])
            assert float(np.asarray(test)[1]) > 0.001


def _bound(model, posterior, data):
    return elbo(model, posterior, data, key=jr.key(8), num_samples=3)


def _data(num_outputs: int) -> Dataset:
    return Dataset(jr.normal(jr.key(20), (7, D)), jr.normal(jr.key(21), (7, num_outputs)))


def test_without_coupling_it_is_the_mean_field():
    widths = (3, 2, 2)
    model, data = _model(widths), _data(2)
    coupled = _posterior(model, "mean-field")
    q, ends = coupled.outputs, np.cumsum(widths)
    blocks = [
        GaussianBlock(q.mean.value[end - width : end], q.root.value[end - width : end])
        for end, width in zip(ends, widths, strict=True)
    ]
    mean_field = MeanField(tuple(blocks))
    value_and_grad = eqx.filter_jit(eqx.filter_value_and_grad(lambda p: _bound(model, p, data).total))
    ours, slope = value_and_grad(coupled)
    theirs, wanted = value_and_grad(mean_field)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    for name in ("mean", "root"):
        stacked = jnp.concatenate([getattr(block, name).raw for block in wanted.blocks])
        np.testing.assert_allclose(getattr(slope.outputs, name).raw, stacked, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["stripes-and-arrow", "layer-wise"])
def test_a_pattern_is_the_full_one_with_blocks_at_zero(structure):
    model, data = _model((2, 3, 2)), _data(2)
    some, full = _posterior(model, structure), Coupled.at_prior(model.layers, "fully-coupled")
    pattern = full.outputs.pattern
    place = {pair: k for k, pair in enumerate(some.outputs.pattern.coupled)}
    coupling = jnp.stack(
        [some.outputs.coupling.value[place[p]] if p in place else jnp.zeros((M, M)) for p in pattern.coupled]
    )
    outputs = dataclasses.replace(
        full.outputs, mean=some.outputs.mean.value, root=some.outputs.root.value, coupling=coupling
    )
    full = eqx.tree_at(lambda p: p.outputs, full, outputs)
    value_and_grad = eqx.filter_jit(eqx.filter_value_and_grad(lambda p: _bound(model, p, data).total))
    (ours, slope), (theirs, wanted) = value_and_grad(some), value_and_grad(full)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    np.testing.assert_allclose(slope.outputs.mean.raw, wanted.outputs.mean.raw, atol=1e-8)
    np.testing.assert_allclose(slope.outputs.root.raw, wanted.outputs.root.raw, atol=1e-8)
    kept = jnp.stack([wanted.outputs.coupling.raw[k] for k, p in enumerate(pattern.coupled) if p in place])
    np.testing.assert_allclose(slope.outputs.coupling.raw.reshape(-1), kept.reshape(-1), atol=1e-8)


def test_layers_with_fewer_inducing_outputs_are_filled_up():
    """A layer with M = 3 beside one with M = 4: as in brute force, and the filling gets no gradient."""
    model, data = _model((2, 1)), _data(1)
    few = GPLayer(RBF(0.8), 2, Zero(), Points(jr.normal(jr.key(1), (3, D))))
    model = DeepGP([few, model.layers[1]], GaussianNoise(0.1))
    posterior = Coupled.at_prior(model.layers, "fully-coupled")
    slope = eqx.filter_jit(eqx.filter_grad(lambda p: _bound(model, p, data).total))(posterior)
    assert float(jnp.max(jnp.abs(slope.outputs.mean.raw[:2, 3:]))) == 0.0
    assert float(jnp.max(jnp.abs(slope.outputs.root.raw[:2, 3:]))) == 0.0
    assert float(jnp.max(jnp.abs(slope.outputs.coupling.raw[:, :, 3:][jnp.array([1, 2])]))) == 0.0
    assert bool(jnp.any(slope.outputs.mean.raw[:2, :3] != 0.0))


def test_natural_steps_of_a_block_pattern():
    """Without coupling the block step is that of every Gaussian by itself; with all blocks that of one large one."""
    keys = jr.split(jr.key(0), 4)
    size = 3
    for structure in ("none", "all"):
        mask = np.eye(size, dtype=bool) if structure == "none" else np.tril(np.ones((size, size), bool))
        pattern = BlockPattern.from_mask(mask)
        K = len(pattern.pairs)
        root = 0.3 * jr.normal(keys[0], (K, M, M))
        root = root.at[:size].set(jnp.tril(root[:size]) + jnp.eye(M))
        slope = 0.1 * jr.normal(keys[1], (K, M, M))
        slope = slope.at[:size].set(jnp.tril(slope[:size]))
        mean, mean_slope = jr.normal(keys[2], (size, M)), 0.1 * jr.normal(keys[3], (size, M))
        new_mean, new_root = jax.jit(natural_block_step, static_argnums=0)(pattern, mean, root, mean_slope, slope, 0.1)
        if structure == "none":
            wanted_mean, wanted_root = natural_step(mean, root, mean_slope, slope, 0.1)
            np.testing.assert_allclose(new_mean, wanted_mean, atol=1e-12)
            np.testing.assert_allclose(new_root, wanted_root, atol=1e-12)
        else:
            R, G = (jnp.asarray(dense_root(pattern.pairs, np.asarray(part), size)) for part in (root, slope))
            wanted_mean, wanted_root = natural_step(mean.reshape(-1), R, mean_slope.reshape(-1), G, 0.1)
            np.testing.assert_allclose(new_mean.reshape(-1), wanted_mean, atol=1e-12)
            np.testing.assert_allclose(dense_root(pattern.pairs, np.asarray(new_root), size), wanted_root, atol=1e-12)


def test_particles_at_one_place_are_a_mean_field_without_spread():
    model, data = _model((2, 1)), _data(1)
    v = [jr.normal(jr.key(i), (1, width, M)) for i, width in enumerate((2, 1))]
    tight = MeanField(
        tuple(GaussianBlock(block[0], 1e-12 * jnp.tile(jnp.eye(M), (len(block[0]), 1, 1))) for block in v)
    )
    noise = draw_noise(model.layers, jr.key(3), 1, data.num_rows, data.x.dtype)

    @eqx.filter_jit
    def forward(posterior):
        return propagate(model.layers, posterior, data.x, posterior.begin(model.layers), noise).marginal()

    ours, wanted = forward(Particles(tuple(v))), forward(tight)
    np.testing.assert_allclose(ours.mean, wanted.mean, atol=1e-9)
    np.testing.assert_allclose(ours.variance, wanted.variance, atol=1e-9)


@pytest.mark.slow
def test_many_samples_differentiate_under_jit_and_vmap():
    model, data = _model((2, 2, 1)), _data(1)
    posteriors = [_posterior(model, "stripes-and-arrow", seed) for seed in range(2)]
    arrays, static = eqx.partition(jax.tree.map(lambda *leaves: jnp.stack(leaves), *posteriors), eqx.is_array)
    bounds = jax.jit(jax.vmap(lambda own: _bound(model, eqx.combine(own, static), data).total))(arrays)
    for bound, posterior in zip(bounds, posteriors, strict=True):
        alone = eqx.filter_jit(_bound)(model, posterior, data).total
        np.testing.assert_allclose(bound, alone, rtol=1e-10)
