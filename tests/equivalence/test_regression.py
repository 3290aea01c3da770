"""Exact and sparse regression against scikit-learn, plain NumPy and each other."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import gaussian_process

from dgpax import DeepGP, GPLayer, objectives, posteriors
from dgpax import propagate as forward
from dgpax.data import Dataset
from dgpax.inducing import Points
from dgpax.kernels import RBF, Matern32, Matern52
from dgpax.likelihoods import GaussianNoise
from dgpax.means import Constant
from dgpax.posteriors import MeanField


def _data(rng, N=30, D=2, P=1):
    x = rng.uniform(-2, 2, size=(N, D))
    y = np.stack([np.sin(2 * x[:, 0] + p) + 0.3 * x[:, -1] for p in range(P)], axis=1)
    return Dataset(jnp.asarray(x), jnp.asarray(y + 0.1 * rng.normal(size=y.shape)))


def _model(kernel, noise: Any = 0.05, z=None, P=1, mean=None):
    inducing = None if z is None else Points(jnp.asarray(z))
    layer = GPLayer(kernel, num_outputs=P, inducing=inducing, **({} if mean is None else {"mean": mean}))
    return DeepGP(layer, GaussianNoise(noise))


log_evidence = eqx.filter_jit(objectives.log_evidence)
collapsed_bound = eqx.filter_jit(objectives.collapsed_bound)
elbo = eqx.filter_jit(objectives.elbo)
condition = eqx.filter_jit(posteriors.ExactPosterior.condition)
optimal_posterior = eqx.filter_jit(posteriors.optimal_posterior)
propagate = eqx.filter_jit(forward.propagate)


@eqx.filter_jit
def layer_over_inputs(index, layer, posterior, x, carry):
    return forward.outputs_of(index, layer, posterior, x, carry).over_inputs()


sk: Any = gaussian_process.kernels
GaussianProcessRegressor: Any = gaussian_process.GaussianProcessRegressor

SKLEARN: dict[str, Any] = {
    "rbf": (RBF(jnp.asarray([0.7, 1.4]), 1.7), 1.7 * sk.RBF([0.7, 1.4])),
    "matern32": (Matern32(jnp.asarray([0.7, 1.4]), 0.6), 0.6 * sk.Matern([0.7, 1.4], nu=1.5)),
    "matern52": (Matern52(0.9, 2.0), 2.0 * sk.Matern(0.9, nu=2.5)),
}


@pytest.mark.parametrize("name", SKLEARN)
def test_exact_regression_agrees_with_scikit_learn(name, rng):
    kernel, sk_kernel = SKLEARN[name]
    data, x_new = _data(rng), rng.uniform(-3, 3, size=(12, 2))
    peer = GaussianProcessRegressor(sk_kernel, alpha=0.05, optimizer=None).fit(data.x, np.asarray(data.y)[:, 0])
    mean, cov = peer.predict(x_new, return_cov=True)
    std = peer.predict(x_new, return_std=True)[1]
    model = _model(kernel)
    posterior = condition(model, data)
    carry = posterior.begin(model.layers)
    q = propagate(model.layers, posterior, jnp.asarray(x_new), carry).marginal()
    joint = layer_over_inputs(0, model.layers[0], posterior, jnp.asarray(x_new), carry)
    np.testing.assert_allclose(q.mean[:, 0], mean, atol=1e-8)
    np.testing.assert_allclose(q.stddev[:, 0], std, atol=1e-8)
    np.testing.assert_allclose(joint.covariance[0], cov, atol=1e-8)
    np.testing.assert_allclose(joint.mean, q.mean, atol=1e-12)
    evidence = log_evidence(model, data).total
    np.testing.assert_allclose(evidence, peer.log_marginal_likelihood(peer.kernel_.theta), atol=1e-8)


def test_several_outputs_are_the_sum_of_single_ones(rng):
    data = _data(rng, P=3)
    z = rng.uniform(-2, 2, size=(7, 2))
    kernel, noise = RBF(jnp.asarray([0.8, 1.1])), 0.07
    each = [Dataset(data.x, data.y[:, p : p + 1]) for p in range(3)]
    for objective in (log_evidence, collapsed_bound):
        together = objective(_model(kernel, noise, z, P=3), data).total
        alone = sum(float(objective(_model(kernel, noise, z), one).total) for one in each)
        np.testing.assert_allclose(together, alone, rtol=1e-11)


@pytest.mark.slow
def test_noise_and_kernels_of_their_own_per_output(rng):
    data, x_new = _data(rng, P=2), jnp.asarray(rng.uniform(-2, 2, size=(5, 2)))
    z = jnp.asarray(rng.uniform(-2, 2, size=(7, 2)))
    scales, variances, noises = np.array([[0.5, 1.0], [1.3, 0.6]]), np.array([1.0, 2.0]), np.array([0.05, 0.2])
    together = _model(RBF(jnp.asarray(scales), jnp.asarray(variances)), jnp.asarray(noises), z, P=2)
    shared_kernel = _model(RBF(0.8), jnp.asarray(noises), z, P=2)
    for p in range(2):
        one = Dataset(data.x, data.y[:, p : p + 1])
        alone = _model(RBF(jnp.asarray(scales[p]), variances[p]), noises[p], z)
        for infer in (condition, optimal_posterior):
            qs = [
                propagate(m.layers, q, x_new, q.begin(m.layers)).marginal()
                for m, q in ((together, infer(together, data)), (alone, infer(alone, one)))
            ]
            np.testing.assert_allclose(qs[0].mean[:, p], qs[1].mean[:, 0], atol=1e-9)
            np.testing.assert_allclose(qs[0].variance[:, p], qs[1].variance[:, 0], atol=1e-9)
    singles = [_model(RBF(0.8), noise, z) for noise in noises]
    for objective in (log_evidence, collapsed_bound):
        alone = sum(float(objective(m, Dataset(data.x, data.y[:, p : p + 1])).total) for p, m in enumerate(singles))
        np.testing.assert_allclose(objective(shared_kernel, data).total, alone, rtol=1e-11)


def test_a_mean_function_is_the_same_as_shifted_targets(rng):
    data = _data(rng)
    shifted = Dataset(data.x, data.y - 3.0)
    with_mean, without = _model(RBF(1.0), mean=Constant(3.0)), _model(RBF(1.0))
    np.testing.assert_allclose(log_evidence(with_mean, data).total, log_evidence(without, shifted).total, rtol=1e-12)
    posterior = condition(with_mean, data)
    far = propagate(with_mean.layers, posterior, jnp.full((1, 2), 1e6), posterior.begin(with_mean.layers)).marginal()
    np.testing.assert_allclose(far.mean, 3.0, atol=1e-12)
    np.testing.assert_allclose(far.variance, 1.0, atol=1e-12)


@pytest.mark.parametrize("kernel", [RBF(0.4, 1.3), Matern32(0.8)], ids=["rbf", "matern32"])
def test_inducing_points_at_the_data_give_exact_regression(kernel, rng):
    data, x_new = _data(rng, N=25, D=2, P=2), jnp.asarray(rng.uniform(-2, 2, size=(6, 2)))
    model = _model(kernel, 0.1, data.x, P=2)
    np.testing.assert_allclose(collapsed_bound(model, data).total, log_evidence(model, data).total, atol=1e-8)
    exact, sparse = condition(model, data), optimal_posterior(model, data)
    q_exact = propagate(model.layers, exact, x_new, exact.begin(model.layers)).marginal()
    q_sparse = propagate(model.layers, sparse, x_new, sparse.begin(model.layers)).marginal()
    np.testing.assert_allclose(q_sparse.mean, q_exact.mean, atol=1e-8)
    np.testing.assert_allclose(q_sparse.variance, q_exact.variance, atol=1e-8)


def test_collapsed_bound_is_the_elbo_at_the_optimal_posterior(rng):
    data = _data(rng, N=40, P=2)
    model = _model(RBF(jnp.asarray([0.6, 1.2]), 1.5), 0.08, rng.uniform(-2, 2, size=(9, 2)), P=2)
    best = optimal_posterior(model, data)
    bound = collapsed_bound(model, data).total
    np.testing.assert_allclose(elbo(model, best, data).total, bound, atol=1e-8)
    for scale in (0.9, 1.1):
        worse = jax.tree.map(lambda leaf, s=scale: s * leaf, best)
        assert float(elbo(model, worse, data).total) < float(bound)
    assert float(elbo(model, MeanField.at_prior(model.layers), data).total) < float(bound)


def test_the_gradient_of_the_elbo_vanishes_at_the_optimal_posterior(rng):
    data = _data(rng, N=40)
    model = _model(RBF(0.8), 0.1, rng.uniform(-2, 2, size=(6, 2)))
    gradient = jax.grad(lambda q: elbo(model, q, data).total)(optimal_posterior(model, data))
    assert max(float(jnp.max(jnp.abs(jnp.tril(leaf)))) for leaf in jax.tree.leaves(gradient)) < 1e-7


@pytest.mark.slow
def test_the_bound_never_exceeds_the_evidence():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        data = _data(rng, N=20)
        z = rng.uniform(-2, 2, size=((2, 9)[seed % 2], 2))
        kernel = [RBF, Matern32, Matern52][seed % 3](jnp.asarray(rng.uniform(0.3, 2, 2)), rng.uniform(0.2, 3))
        model = _model(kernel, rng.uniform(0.01, 1), z)
        assert float(collapsed_bound(model, data).total) <= float(log_evidence(model, data).total) + 1e-9


@pytest.mark.slow
def test_chunks_change_nothing(rng):
    data = _data(rng, N=53, P=2)
    model = _model(RBF(jnp.asarray([0.6, 1.2])), 0.05, rng.uniform(-2, 2, size=(8, 2)), P=2)

    def value_and_gradient(chunk_rows):
        return jax.jit(jax.value_and_grad(lambda m: collapsed_bound(m, data, chunk_rows).total))(model)

    whole, whole_gradient = value_and_gradient(None)
    for chunk_rows in (1, 10, 53, 100):
        value, gradient = value_and_gradient(chunk_rows)
        np.testing.assert_allclose(value, whole, rtol=1e-12, atol=1e-10)
        for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(whole_gradient), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)
    a, b = optimal_posterior(model, data, 10), optimal_posterior(model, data)
    np.testing.assert_allclose(a.blocks[0].mean.value, b.blocks[0].mean.value, atol=1e-10)


def test_the_gradient_of_the_evidence_agrees_with_differences(rng):
    data = _data(rng, N=15, P=2)

    @jax.jit
    def value(theta):
        kernel = Matern52(jnp.exp(theta[:2]), jnp.exp(theta[2]))
        return log_evidence(_model(kernel, jnp.exp(theta[3]), P=2, mean=Constant(theta[4])), data).total

    gradient = jax.jit(jax.grad(value))
    theta = jnp.asarray([0.1, -0.3, 0.4, -2.0, 0.2])
    step = 1e-5
    differences = [(value(theta.at[i].add(step)) - value(theta.at[i].add(-step))) / (2 * step) for i in range(5)]
    np.testing.assert_allclose(gradient(theta), differences, rtol=1e-6, atol=1e-6)
    hessian = jax.hessian(value)(theta)
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-8)
    column = (gradient(theta.at[0].add(step)) - gradient(theta.at[0].add(-step))) / (2 * step)
    np.testing.assert_allclose(hessian[0], column, rtol=1e-5, atol=1e-5)


def test_float32_stays_float32(rng):
    from dgpax.parameters import cast

    data = cast(_data(rng, N=20), jnp.float32)
    model = cast(_model(RBF(0.8), 0.1, rng.uniform(-2, 2, size=(5, 2))), jnp.float32)
    double = cast(model, jnp.float64)
    for objective in (log_evidence, collapsed_bound):
        value = objective(model, data).total
        assert value.dtype == jnp.float32
        np.testing.assert_allclose(value, objective(double, cast(data, jnp.float64)).total, rtol=1e-4)
    for posterior in (condition(model, data), optimal_posterior(model, data)):
        q = propagate(model.layers, posterior, data.x, posterior.begin(model.layers)).marginal()
        assert q.mean.dtype == q.variance.dtype == jnp.float32
