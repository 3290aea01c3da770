"""The chain over layers: brute-force conditioning, the coupled posterior with the same covariance, natural steps."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from parts import layer_inputs
from reference.coupled import condition, dense_kl, layer_rows

from dgpax import DeepGP, GPLayer, dataset, deep_gp, fit
from dgpax.data import Dataset
from dgpax.inducing import Points
from dgpax.inference import NaturalGradient, Variational
from dgpax.kernels import RBF
from dgpax.likelihoods import GaussianNoise
from dgpax.means import Zero
from dgpax.objectives import elbo, sampled_elbo
from dgpax.parameters import find
from dgpax.posteriors import Chain, ChainGaussian, Coupled, MeanField
from dgpax.propagate import draw_noise, outputs_of

M, N, D = 4, 3, 2
WIDTHS = [(1, 2, 1), *(pytest.param(widths, marks=pytest.mark.slow) for widths in ((3, 2), (2, 3, 1), (3, 1, 2, 2)))]


def _model(widths) -> DeepGP:
    layers, num_inputs = [], D
    for index, width in enumerate(widths):
        z = jr.uniform(jr.key(10 + index), (M, num_inputs), minval=-1.5, maxval=1.5)
        layers.append(GPLayer(RBF(0.8 + 0.1 * index, 1.0 + 0.2 * index), width, Zero(), Points(z)))
        num_inputs = width
    return DeepGP(layers, GaussianNoise(0.1))


def _chain(model: DeepGP, seed: int = 0) -> Chain:
    start = Chain.at_prior(model.layers)
    q, keys = start.outputs, jr.split(jr.key(seed), 3)
    outputs = ChainGaussian(
        jr.normal(keys[0], q.mean.shape),
        0.3 * jnp.tril(jr.normal(keys[1], q.root.shape)) + jnp.eye(M),
        0.4 * jr.normal(keys[2], q.transition.shape),
        q.widths,
    )
    return eqx.tree_at(lambda p: p.outputs, start, outputs)


def _dense(posterior: Chain) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance by S = (I − B)⁻¹ CCᵀ (I − B)⁻ᵀ, from the blocks as they are documented."""
    q = posterior.outputs
    n, ends = sum(q.widths), np.cumsum(q.widths)
    B, C = np.zeros((n * M, n * M)), np.zeros((n * M, n * M))
    blocks, place = np.asarray(q.transition.value), 0
    for i, root in enumerate(np.asarray(q.root.value)):
        C[i * M : (i + 1) * M, i * M : (i + 1) * M] = root
    for end, width, before in zip(ends[1:], q.widths[1:], q.widths, strict=False):
        for i in range(end - width, end):
            for j in range(end - width - before, end - width):
                B[i * M : (i + 1) * M, j * M : (j + 1) * M] = blocks[place]
                place += 1
    assert place == len(blocks)
    root = np.linalg.solve(np.eye(n * M) - B, C)
    return np.asarray(q.mean.value).reshape(-1), root @ root.T


def _same_coupled(model: DeepGP, posterior: Chain) -> Coupled:
    """A fully coupled posterior with the chain's covariance."""
    start, (_, covariance) = Coupled.at_prior(model.layers, "fully-coupled"), _dense(posterior)
    root = np.linalg.cholesky(covariance).reshape(len(covariance) // M, M, -1, M).swapaxes(1, 2)
    q, (i, j) = start.outputs, np.transpose(start.outputs.pattern.pairs)
    blocks = jnp.asarray(root[i, j])
    outputs = type(q)(posterior.outputs.mean.value, blocks[: q.pattern.size], blocks[q.pattern.size :], q.pattern)
    return eqx.tree_at(lambda p: p.outputs, start, outputs)


def _layer_numbers(model: DeepGP):
    return [
        (np.asarray(layer.inducing.locations.value), float(layer.kernel.lengthscale), float(layer.kernel.variance), w)
        for layer, w in ((layer, layer.num_outputs) for layer in model.layers)
    ]


@eqx.filter_jit
def _forward(model, posterior, x):
    noise = draw_noise(model.layers, jr.key(2), 2, len(x), x.dtype)
    given = layer_inputs(model.layers, posterior, x, posterior.begin(model.layers), noise)
    joints = [
        outputs_of(i, model.layers[i], posterior, at, carry).over_outputs() for i, (at, carry) in enumerate(given)
    ]
    return [at for at, _ in given], joints


@pytest.mark.parametrize("widths", WIDTHS)
def test_every_layer_given_the_others_is_brute_force_conditioning(widths):
    model = _model(widths)
    posterior, x = _chain(model), jr.normal(jr.key(1), (N, D))
    given, joints = _forward(model, posterior, x)
    mean, covariance = _dense(posterior)
    for s in range(2):
        for n in range(N):
            inputs = [np.asarray(at[n] if at.ndim == 2 else at[s, n]) for at in given]
            for index, joint in enumerate(joints):
                m, S = layer_rows(mean, covariance, _layer_numbers(model)[: index + 1], inputs)
                wanted_mean, wanted_covariance = condition(m, S, np.concatenate([np.zeros(0), *inputs[1 : index + 1]]))
                at = (n,) if joint.mean.ndim == 2 else (s, n)
                np.testing.assert_allclose(joint.mean[at], wanted_mean, atol=1e-8)
                np.testing.assert_allclose(joint.covariance[at], wanted_covariance, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("widths", WIDTHS)
def test_it_is_the_coupled_posterior_with_the_same_covariance(widths):
    model = _model(widths)
    posterior, x = _chain(model), jr.normal(jr.key(1), (N, D))
    ours, theirs = _forward(model, posterior, x)[1], _forward(model, _same_coupled(model, posterior), x)[1]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.mean, other.mean, atol=1e-8)
        np.testing.assert_allclose(one.covariance, other.covariance, atol=1e-8)


@pytest.mark.parametrize("widths", WIDTHS)
def test_kl_covariance_and_draws_are_the_dense_ones(widths):
    model = _model(widths)
    posterior = _chain(model)
    mean, covariance = _dense(posterior)
    n, pattern = len(mean) // M, posterior.outputs.covariance()[0]
    eye = jnp.eye(n * M).reshape(n, M, n * M)

    @eqx.filter_jit
    def found(posterior):
        q = posterior.outputs
        return posterior.kl(model.layers, None), q.covariance()[1], q.apply(eye), q.apply_transposed(eye)

    kl, blocks, root, transposed = found(posterior)
    np.testing.assert_allclose(kl, dense_kl(mean, covariance, np.eye(len(mean))), rtol=1e-10)
    dense = covariance.reshape(n, M, n, M).swapaxes(1, 2)
    np.testing.assert_allclose(blocks, dense[tuple(np.transpose(pattern.pairs))], atol=1e-10)
    np.testing.assert_allclose(dense[np.tril(~pattern.mask)], 0.0, atol=1e-14)
    root = np.asarray(root).reshape(n * M, n * M)
    np.testing.assert_allclose(root @ root.T, covariance, atol=1e-10)
    np.testing.assert_allclose(transposed.reshape(n * M, n * M), root.T, atol=1e-12)


def test_the_number_of_parameters_is_linear_in_the_number_of_layers():
    def count(num_layers: int) -> int:
        return sum(p.raw.size for p in find(Chain.at_prior(_model((2,) * num_layers).layers)).values())

    counts = [count(num_layers) for num_layers in (2, 3, 4, 5)]
    assert len(set(np.diff(counts))) == 1
    assert counts[0] == 4 * M + 4 * M * M + 4 * M * M


def _data(num_outputs: int) -> Dataset:
    return Dataset(jr.normal(jr.key(20), (7, D)), jr.normal(jr.key(21), (7, num_outputs)))


@pytest.mark.slow
def test_without_transitions_it_is_the_mean_field_and_bounds_agree():
    model, data = _model((2, 1)), _data(1)
    bound = eqx.filter_jit(lambda p: elbo(model, p, data, key=jr.key(8), num_samples=3).total)
    chain, mean_field = Chain.at_prior(model.layers, 0.1), MeanField.at_prior(model.layers, 0.1)
    np.testing.assert_allclose(bound(chain), bound(mean_field), rtol=1e-10)


@pytest.mark.slow
def test_the_marginal_and_the_sampled_bound_are_the_same_on_average():
    """20,000 samples each: within 4.5 standard errors of the sampled one's batches (an alarm in 150,000)."""
    model, data = _model((2, 2)), _data(2)
    posterior = _chain(model)

    def bounds(objective, num_samples):
        one = eqx.filter_jit(lambda key: objective(model, posterior, data, key=key, num_samples=num_samples).total)
        return np.array([float(one(key)) for key in jr.split(jr.key(3), 20)])

    marginal, sampled = bounds(elbo, 1000), bounds(sampled_elbo, 1000)
    error = np.sqrt((np.var(marginal) + np.var(sampled)) / 19)
    assert abs(marginal.mean() - sampled.mean()) < 4.5 * error


def test_a_natural_step_is_steepest_descent_in_the_fisher_metric():
    """To first order in the rate, the step of (m, B, C) is −F⁻¹g with the Fisher information of the dense Gaussian."""
    model, rate = _model((1, 2)), 1e-6
    q = _chain(model).outputs
    keys = jr.split(jr.key(4), 3)
    gradient = ChainGaussian(
        jr.normal(keys[0], q.mean.shape),
        jnp.tril(jr.normal(keys[1], q.root.shape)),
        jr.normal(keys[2], q.transition.shape),
        q.widths,
    )
    lower = np.tril_indices(M)

    def flat(q):
        return jnp.concatenate([q.mean.raw.ravel(), q.root.raw[:, *lower].ravel(), q.transition.raw.ravel()])

    def moments(vector):
        mean, root, transition = jnp.split(vector, np.cumsum([q.mean.raw.size, 3 * len(lower[0])]))
        roots = jnp.zeros(q.root.shape).at[:, *lower].set(root.reshape(3, -1))
        own = ChainGaussian(mean.reshape(q.mean.shape), roots, transition.reshape(q.transition.shape), q.widths)
        R = own.apply(jnp.eye(3 * M).reshape(3, M, 3 * M)).reshape(3 * M, 3 * M)
        return mean, R @ R.T

    start = flat(q)
    mean_slope, slope = (np.asarray(part) for part in jax.jit(jax.jacfwd(moments))(start))
    precision = np.linalg.inv(np.asarray(jax.jit(moments)(start)[1]))
    directions = np.einsum("ab,bcp->acp", precision, slope)
    fisher = mean_slope.T @ precision @ mean_slope + 0.5 * np.einsum("acp,caq->pq", directions, directions)
    wanted = -np.linalg.solve(fisher, np.asarray(flat(gradient)))
    found = (flat(eqx.filter_jit(lambda q: q.natural_step(gradient, rate))(q)) - start) / rate
    np.testing.assert_allclose(found, wanted, atol=1e-3 * np.max(np.abs(wanted)))


@pytest.mark.slow
def test_it_trains_by_its_word():
    x = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    data = dataset(x, np.sin(3 * x[:, :1]) * x[:, 1:])
    model = deep_gp(data, 2, 8, width=2)
    fitted = fit(model, data, Variational("chain"), engine=NaturalGradient(max_steps=300), progress=False)
    assert isinstance(fitted.posterior, Chain)
    assert fitted.report.objective_end > fitted.report.objective_start + 20
    assert float(jnp.max(jnp.abs(fitted.posterior.outputs.transition.value))) > 1e-3
