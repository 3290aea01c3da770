"""Hyperparameters updated in the maximisation step, displaced inputs, a one-layer GP that is shared."""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import stride as reference

import dgpax
from dgpax import metrics
from dgpax.errors import InputError
from dgpax.kernels import RBF
from dgpax.stride import Composition, CrossApproximation, FullySparse, Residual, Schedule, Standard, Stride
from dgpax.stride._hyperparameters import improve_hyperparameters, mean_bound
from dgpax.stride._problem import start_posterior
from dgpax.stride._top import SparseTop

N, M = 40, 8
SHORT = Schedule(num_iterations=2, num_steps=10, num_exchanges=1, num_candidates=10)
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(N, 2))
Y = np.sin(4 * X[:, :1]) + X[:, 1:] + 0.1 * RNG.normal(size=(N, 1))


def posterior_at(architecture, method, lengthscale=2.0, variance=0.3, noise=0.5):
    data = dgpax.dataset(X, Y)
    top = SparseTop(jnp.arange(0, N, N // M)[:M])
    return start_posterior(architecture, method, top, data, RBF(lengthscale, variance), jnp.asarray(noise))


@pytest.fixture(scope="module")
def problem():
    return posterior_at(Residual(), Standard())


@pytest.mark.parametrize("noise_known", [False, True])
def test_updates_raise_the_bound(problem, noise_known):
    posterior, whitened = problem

    @eqx.filter_jit
    def improve(posterior, features):
        improved = improve_hyperparameters(posterior, features, 25, noise_known=noise_known)
        return improved, mean_bound(posterior, features), mean_bound(improved, features)

    features = posterior.features(whitened)[None]
    improved, before, after = improve(posterior, features)
    assert after > before + 1
    kernel = improved.prior.top.kernel
    K = reference.rbf(X, X, np.asarray(kernel.lengthscale.value), float(kernel.variance.value))
    rows, noise = np.asarray(posterior.top.inducing), float(improved.noise_variance)
    assert_allclose(after, reference.bound(K, rows, Y, noise), rtol=1e-7)
    assert (noise == 0.5) == noise_known


@pytest.mark.parametrize("method", [Standard(), CrossApproximation(5), FullySparse()], ids=str)
def test_displaced_inputs_start_at_the_inputs_whatever_the_rank(method):
    posterior, whitened = posterior_at(Residual(), method)
    assert_array_equal(posterior.features(whitened), X)
    assert all(not np.any(variables) for variables in whitened)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chains")
def test_a_fit_with_updates_and_a_shared_one_layer_gp():
    data = dgpax.dataset(X, Y)
    first = dgpax.fit(Residual(), data, Stride(M, 3, schedule=SHORT, noise_variance=0.01), progress=False)
    schedule = replace(SHORT, num_updates=10)
    method = Stride(M, 3, hidden=FullySparse(), initial=first.initial, schedule=schedule)
    updated = dgpax.fit(Residual(), data, method, progress=False)
    assert updated.initial.fitted is first.initial.fitted
    assert not np.array_equal(updated.model.layers[-1].kernel.variance.value, first.initial.kernel.variance.value)
    assert float(metrics.smse(Y, dgpax.predict(updated, X))) < 0.3
    scaling, noise = updated.model.scaling, updated.model.likelihood.noise_variance.value
    assert_allclose(noise * scaling.y_scale**2, 0.01, rtol=1e-6)


@pytest.mark.slow
def test_a_one_layer_gp_of_other_data():
    data = dgpax.dataset(X, Y)
    first = dgpax.fit(Residual(), data, Stride(M, 1, schedule=Schedule(num_iterations=0)), progress=False)
    with pytest.raises(InputError, match="Leave initial out"):
        dgpax.fit(Residual(), data, Stride(M + 1, initial=first.initial))
    with pytest.raises(InputError, match="noise of its own"):
        Stride(M, initial=first.initial, noise_variance=0.1)


def test_displacements_that_make_no_sense():
    with pytest.raises(InputError, match="variance"):
        Residual(variance=0.0)
    with pytest.raises(InputError, match="num_updates"):
        Schedule(num_updates=-1)
    with pytest.raises(InputError, match="hidden layer"):
        Composition(num_hidden=0)
