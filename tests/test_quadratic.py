"""Quadratic forms of many rows: by blocks on a CPU, by covariances on accelerators."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dgpax
from dgpax.data import _sums
from dgpax.linalg import _cholesky, bilinear_forms, row_norms
from dgpax.objectives import elbo
from dgpax.parameters import combine, partition
from dgpax.posteriors import MeanField

BACKENDS = pytest.mark.parametrize("backend", ["cpu", "gpu"])


@BACKENDS
@pytest.mark.parametrize("right_axes", [(), (4,)], ids=["without samples", "with samples"])
def test_bilinear_forms(rng, monkeypatch, backend, right_axes):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    shapes = (4, 7, 10), (3, 10, 10), (*right_axes, 7, 10)
    A, S, B = (rng.normal(size=shape) for shape in shapes)
    everywhere = np.broadcast_to(B, A.shape)
    expected = np.einsum("snm,pmk,snk->snp", A, S, everywhere)
    np.testing.assert_allclose(bilinear_forms(*map(jnp.asarray, (A, S, B))), expected, rtol=1e-10)
    slopes = jax.grad(lambda *x: jnp.sum(jnp.sin(bilinear_forms(*x))), argnums=(0, 1, 2))(*map(jnp.asarray, (A, S, B)))
    weights = np.cos(expected)
    by_right = np.einsum("snp,snm,pmk->snk", weights, A, S)
    np.testing.assert_allclose(slopes[0], np.einsum("snp,pmk,snk->snm", weights, S, everywhere), atol=1e-10)
    np.testing.assert_allclose(slopes[1], np.einsum("snp,snm,snk->pmk", weights, A, everywhere), atol=1e-10)
    np.testing.assert_allclose(slopes[2], by_right if right_axes else by_right.sum(axis=0), atol=1e-10)


@BACKENDS
def test_row_norms(rng, monkeypatch, backend):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    A, R = rng.normal(size=(2, 7, 10)), rng.normal(size=(3, 10, 10))
    expected = np.stack([np.sum((A @ np.tril(root)) ** 2, axis=-1) for root in R], axis=-1)
    np.testing.assert_allclose(row_norms(jnp.asarray(A), jnp.asarray(R)), expected, rtol=1e-12)


@BACKENDS
def test_derivatives_of_row_norms(rng, monkeypatch, backend):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    A, R, weights = (jnp.asarray(rng.normal(size=shape)) for shape in ((7, 10), (3, 10, 10), (7, 3)))
    by_rows, by_roots = jax.grad(lambda a, r: jnp.sum(weights * row_norms(a, r)), argnums=(0, 1))(A, R)
    L = np.tril(R)
    np.testing.assert_allclose(by_rows, 2 * np.einsum("np,pij,pkj,nk->ni", weights, L, L, A), rtol=1e-10)
    np.testing.assert_allclose(by_roots, np.tril(2 * np.einsum("np,ni,nk,pkj->pij", weights, A, A, L)), atol=1e-10)


@BACKENDS
def test_row_norms_are_never_negative(rng, monkeypatch, backend):
    """Rows that R all but annihilates: rounding takes the form below zero before it is clipped."""
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    v = rng.normal(size=(500, 20)).astype(np.float32)
    R = np.zeros((1, 20, 20), np.float32)
    R[0, :, 0] = rng.normal(size=20)
    direction = R[0, :, 0] / np.linalg.norm(R[0, :, 0])
    norms = row_norms(jnp.asarray(v - np.outer(v @ direction, direction)), jnp.asarray(R))
    assert float(jnp.min(norms)) >= 0.0


@pytest.mark.parametrize("weights", [None, "some"])
def test_a_deep_model_has_one_bound_on_all_backends(rng, monkeypatch, weights):
    """Accelerators add rows of weight 0, and invert roots by halves."""
    monkeypatch.setattr(_sums, "ALIGN_FROM", 20)
    monkeypatch.setattr(_cholesky, "SOLVED_UP_TO", 3)
    weights = None if weights is None else rng.uniform(0.5, 2.0, size=30)
    data = dgpax.dataset(rng.normal(size=(30, 2)), rng.normal(size=(30, 1)), weights=weights)
    model = dgpax.dsvi(data, 2, 9)
    target = model, MeanField.at_prior(model.layers, inner_scale=0.3)
    free, fixed = partition(target)

    def bound_and_gradient():
        def bound(free):
            return elbo(*combine(free, fixed), data, key=jax.random.key(0), num_samples=2).total

        return jax.jit(jax.value_and_grad(bound))(free)

    here = bound_and_gradient()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    there = bound_and_gradient()
    for ours, theirs in zip(jax.tree.leaves(here), jax.tree.leaves(there), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)
