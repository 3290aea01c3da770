"""Working with u instead of v = R⁻¹u changes nothing: KL, marginals, ELBO, for every structure of Kuu."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from dgpax import DeepGP, GPLayer
from dgpax.covariances import Kuf, Kuu, SharedProcesses
from dgpax.data import Dataset
from dgpax.inducing import AdditiveFourier, Fourier, OutputPoints, Points, ProductFourier
from dgpax.kernels import LMC, RBF, Matern12, Matern32, Matern52, Separate
from dgpax.likelihoods import GaussianNoise
from dgpax.objectives import elbo
from dgpax.posteriors import (
    GaussianBlock,
    InducingOutputs,
    MeanField,
    from_unwhitened,
    kl_unwhitened,
    to_unwhitened,
)
from dgpax.propagate import outputs_of

pytestmark = pytest.mark.slow

P, N, NOISE = 2, 5, 0.1
Z = jnp.linspace(-1, 1, 4)[:, None] * jnp.ones(2)
W = jnp.asarray([[1.0, 0.4], [-0.6, 0.9]])
WAVES = Fourier(-1.5, 1.5, 2)

CASES = {
    "dense": (Matern32(0.7, 1.3), Points(Z)),
    "dense, separate": (RBF(jnp.asarray([[0.6, 0.6], [0.9, 0.9]])), Points(jnp.stack([Z, Z + 0.1]))),
    "low rank": (Matern52(0.8, 1.3).on(0), WAVES),
    "low rank, additive": (Matern12(0.6).on(0) + Matern32(0.8).on(1), AdditiveFourier([WAVES, WAVES])),
    "kronecker": (Matern12(0.6).on(0) * Matern32(0.8).on(1), ProductFourier([WAVES, WAVES])),
    "latent": (LMC(Separate(RBF(0.6), Matern32(0.9)), W), Points(Z)),
    "latent, low rank": (LMC(Matern32(0.9).on(1), W), WAVES),
    "outputs": (LMC(Separate(RBF(0.6), Matern32(0.9)), W), OutputPoints(Z, P)),
}


def problem(case, rng):
    """A layer, a random q(u) whose root isn't triangular, and inputs."""
    kernel, inducing = CASES[case]
    layer = GPLayer(kernel, P, inducing=inducing)
    blocks, M = layer.processes().num_blocks(P), inducing.num_inducing
    mean, root = rng.normal(size=(blocks, M)), np.eye(M) + 0.3 * rng.normal(size=(blocks, M, M))
    return layer, InducingOutputs(jnp.asarray(mean), jnp.asarray(root)), jnp.asarray(rng.uniform(-1, 1, size=(N, 2)))


def by_inverting(layer, q, x):
    """KL, and mean [N, P] and covariance [N, P, N, P] of f, from Kuu⁻¹ for one process after the other."""
    kernel, rows = layer.kernel, x[None]
    processes = layer.processes()
    uu = np.asarray(Kuu(layer.inducing, kernel).to_dense())
    uf = np.asarray(Kuf(layer.inducing, kernel, rows))
    shared = isinstance(processes, SharedProcesses)
    if shared:
        uf = np.moveaxis(uf, 0, 1).reshape(1, uf.shape[1], P * N)
        ff = np.asarray(kernel.cross(rows, rows)).reshape(1, P * N, P * N)
    else:
        ff = np.asarray(processes.kernel.gram(rows))
    blocks = len(q.mean)
    uu, uf, ff = (np.broadcast_to(matrix, (blocks, *matrix.shape[1:])) for matrix in (uu, uf, ff))
    kl, means, covariances = 0.0, [], []
    for m, S, Kuu_, Kuf_, Kff_ in zip(q.mean, q.root @ q.root.mT, uu, uf, ff, strict=True):
        inverse = np.linalg.inv(Kuu_)
        A = inverse @ Kuf_
        means.append(A.T @ m)
        covariances.append(Kff_ - A.T @ (Kuu_ - S) @ A)
        logs = np.linalg.slogdet(Kuu_)[1] - np.linalg.slogdet(S)[1]
        kl += 0.5 * (np.trace(inverse @ S) + m @ inverse @ m - len(m) + logs)
    means, covariances = np.asarray(means), np.asarray(covariances)
    if shared:
        return kl, means.reshape(P, N).T, covariances.reshape(P, N, P, N).transpose(1, 0, 3, 2)
    W = np.eye(P) if processes.mixing is None else np.asarray(processes.mixing)
    return kl, (W @ means).T, np.einsum("pl,ql,lnm->npmq", W, W, covariances)


@eqx.filter_jit
def whitened_answers(layer, q, data):
    posterior = from_unwhitened([q], (layer,))
    joint = outputs_of(0, layer, posterior, data.x, posterior.begin((layer,))).over_both()
    terms = elbo(DeepGP(layer, GaussianNoise(NOISE)), posterior, data)
    kl = kl_unwhitened(q.mean, q.root, Kuu(layer.own_inducing(), layer.kernel))
    return joint, terms, kl, to_unwhitened(posterior, (layer,))


@pytest.mark.parametrize("case", CASES)
def test_whitened_equals_unwhitened(case, rng):
    layer, q, x = problem(case, rng)
    y = rng.normal(size=(N, P))
    kl, mean, covariance = by_inverting(layer, q, x)
    joint, terms, unwhitened_kl, (back,) = whitened_answers(layer, q, Dataset(x, jnp.asarray(y)))
    np.testing.assert_allclose(terms.kl, kl, rtol=1e-8)
    np.testing.assert_allclose(unwhitened_kl, kl, rtol=1e-8)
    np.testing.assert_allclose(joint.mean, mean, atol=1e-8)
    np.testing.assert_allclose(joint.covariance, covariance, atol=1e-8)
    expected = -0.5 * (np.log(2 * np.pi * NOISE) + ((y - mean) ** 2 + np.einsum("npnp->np", covariance)) / NOISE)
    np.testing.assert_allclose(terms.total, expected.sum() - kl, rtol=1e-8)
    assert isinstance(back, InducingOutputs)
    np.testing.assert_allclose(back.mean, q.mean, atol=1e-8)
    np.testing.assert_allclose(back.root @ back.root.mT, q.root @ q.root.mT, atol=1e-8)


def test_a_whitened_posterior_survives_the_round_trip(rng):
    """Two layers, the second with Fourier features; roots come back up to the signs of their columns."""
    layers = (GPLayer(RBF(0.7), 1, inducing=Points(Z)), GPLayer(Matern32(0.8), P, inducing=WAVES))
    blocks = []
    for Q, M in ((1, 4), (P, 5)):
        root = np.tril(rng.normal(size=(Q, M, M))) + 2 * np.eye(M)
        blocks.append(GaussianBlock(jnp.asarray(rng.normal(size=(Q, M))), jnp.asarray(root)))
    back = from_unwhitened(to_unwhitened(MeanField(blocks), layers), layers)
    for block, again in zip(blocks, back.blocks, strict=True):
        assert isinstance(again, GaussianBlock)
        np.testing.assert_allclose(again.mean.value, block.mean.value, atol=1e-10)
        np.testing.assert_allclose(np.abs(again.root.value), np.abs(block.root.value), atol=1e-10)


def test_the_kl_is_differentiable_and_zero_at_the_prior():
    prior = Kuu(WAVES, Matern52(0.8, 1.3))
    root = prior.root().matmul(jnp.eye(5)[None])
    value, slopes = eqx.filter_value_and_grad(lambda q: kl_unwhitened(q[0], q[1], prior))((jnp.zeros((1, 5)), root))
    np.testing.assert_allclose(value, 0.0, atol=1e-12)
    for slope in slopes:
        np.testing.assert_allclose(slope, 0.0, atol=1e-10)
