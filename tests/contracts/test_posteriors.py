"""Every posterior family: shapes, marginal = diagonal of joint, dtype, KL."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from contracts.completeness import final_subclasses
from dgpax import DeepGP, GPLayer
from dgpax.data import Dataset
from dgpax.inducing import Points
from dgpax.kernels import RBF
from dgpax.likelihoods import GaussianNoise
from dgpax.means import Constant
from dgpax.parameters import cast
from dgpax.posteriors import (
    AbstractPosterior,
    Chain,
    Coupled,
    ExactPosterior,
    GaussianBlock,
    LocationDraws,
    MeanField,
    Particles,
    PointsAsLocations,
)
from dgpax.propagate import outputs_of, propagate

P, M, N = 2, 4, 9


def _model():
    z = jr.uniform(jr.key(1), (M, 2))
    return DeepGP(GPLayer(RBF(0.7), P, Constant(0.5), Points(z)), GaussianNoise(0.1))


def _data():
    return Dataset(jr.uniform(jr.key(2), (N, 2)), jr.normal(jr.key(3), (N, P)))


def _mean_field():
    root = jnp.tril(jr.normal(jr.key(5), (P, M, M)))
    return MeanField((GaussianBlock(jr.normal(jr.key(4), (P, M)), root),))


def _moved(start, **others):
    outputs = dataclasses.replace(
        start.outputs,
        mean=jr.normal(jr.key(4), start.outputs.mean.shape),
        root=jnp.tril(jr.normal(jr.key(5), start.outputs.root.shape)),
        **others,
    )
    return eqx.tree_at(lambda posterior: posterior.outputs, start, outputs)


def _coupled(family: Any = Coupled):
    start = family.at_prior(_model().layers, "layer-wise")
    return _moved(start, coupling=jr.normal(jr.key(9), start.outputs.coupling.shape))


POSTERIORS = {
    ExactPosterior: lambda: ExactPosterior.condition(_model(), _data()),
    MeanField: _mean_field,
    Coupled: _coupled,
    Chain: lambda: _moved(Chain.at_prior(_model().layers)),
    PointsAsLocations: lambda: _coupled(PointsAsLocations),
    LocationDraws: lambda: _coupled(PointsAsLocations).layerwise(jr.key(3), ()),
    Particles: lambda: Particles((jr.normal(jr.key(4), (P, M)),)),
}


def test_every_posterior_has_a_row():
    assert set(POSTERIORS) == final_subclasses(AbstractPosterior)


@pytest.mark.parametrize("kind", POSTERIORS, ids=lambda kind: kind.__name__)
def test_marginals_are_the_diagonal_of_the_joint(kind):
    model, posterior, x = _model(), POSTERIORS[kind](), jr.uniform(jr.key(6), (5, 2))
    carry = posterior.begin(model.layers)
    q = propagate(model.layers, posterior, x, carry).marginal()
    joint = outputs_of(0, model.layers[0], posterior, x, carry).over_inputs()
    assert q.mean.shape == (5, P) and joint.covariance.shape == (P, 5, 5)
    np.testing.assert_allclose(joint.mean, q.mean, atol=1e-12)
    np.testing.assert_allclose(joint.variance, q.variance, atol=1e-12)
    assert float(jnp.min(jnp.linalg.eigvalsh(joint.covariance))) > -1e-10


@pytest.mark.parametrize("kind", POSTERIORS, ids=lambda kind: kind.__name__)
def test_a_draw_has_the_moments_of_the_joint_of_a_row(kind):
    """40,000 draws of every row; covariances within 5 of their standard errors at most (30 numbers)."""
    model, posterior, x = _model(), POSTERIORS[kind](), jr.uniform(jr.key(6), (5, 2))
    outputs = outputs_of(0, model.layers[0], posterior, x, posterior.begin(model.layers))
    draws, carry = outputs.draw(jr.normal(jr.key(7), (40_000, 5, P)))
    assert type(carry) is type(posterior.begin(model.layers))
    joint, marginal = outputs.over_outputs(), outputs.marginal()
    np.testing.assert_allclose(joint.variance, marginal.variance, atol=1e-12)
    found = jnp.einsum("snp,snq->npq", draws - joint.mean, draws - joint.mean) / 40_000
    scale = marginal.stddev[..., None] * marginal.stddev[..., None, :]
    assert float(jnp.max(jnp.abs(found - joint.covariance) / scale)) < 5 * np.sqrt(2 / 40_000)


@pytest.mark.parametrize("kind", POSTERIORS, ids=lambda kind: kind.__name__)
def test_sample_axes_broadcast(kind):
    model, posterior = _model(), POSTERIORS[kind]()
    x = jr.uniform(jr.key(7), (3, 5, 2))
    carry = posterior.begin(model.layers)
    stacked = propagate(model.layers, posterior, x, carry).marginal()
    assert stacked.mean.shape == (3, 5, P)
    single = propagate(model.layers, posterior, x[1], carry).marginal()
    np.testing.assert_allclose(stacked.mean[1], single.mean, atol=1e-12)
    np.testing.assert_allclose(stacked.variance[1], single.variance, atol=1e-12)


@pytest.mark.parametrize("kind", POSTERIORS, ids=lambda kind: kind.__name__)
def test_float32_jit_vmap_and_kl(kind):
    model, posterior = cast((_model(), POSTERIORS[kind]()), jnp.float32)
    x = jr.uniform(jr.key(8), (5, 2), jnp.float32)

    @eqx.filter_jit
    def moments(posterior, x):
        carry = posterior.begin(model.layers)
        return propagate(model.layers, posterior, x, carry).marginal(), posterior.kl(model.layers, carry)

    q, kl = moments(posterior, x)
    assert q.mean.dtype == q.variance.dtype == jnp.float32
    assert float(kl) >= 0
    mapped = jax.vmap(lambda row: moments(posterior, row[None])[0].mean[0])(x)
    np.testing.assert_allclose(mapped, q.mean, atol=1e-5)


def test_mean_field_kl_agrees_with_the_dense_formula():
    block = _mean_field().blocks[0]
    total = 0.0
    for p in range(P):
        m, R = np.asarray(block.mean.value[p]), np.asarray(block.root.value[p])
        S = R @ R.T
        total += 0.5 * (np.trace(S) + m @ m - M - np.linalg.slogdet(S)[1])
    model, posterior = _model(), _mean_field()
    np.testing.assert_allclose(posterior.kl(model.layers, posterior.begin(model.layers)), total, rtol=1e-12)


def test_at_the_prior_everything_is_the_prior():
    model = _model()
    posterior = MeanField.at_prior(model.layers)
    carry = posterior.begin(model.layers)
    q = propagate(model.layers, posterior, _data().x, carry).marginal()
    np.testing.assert_allclose(q.mean, 0.5, atol=1e-12)
    np.testing.assert_allclose(q.variance, 1.0, atol=1e-10)
    np.testing.assert_allclose(posterior.kl(model.layers, carry), 0.0, atol=1e-12)
