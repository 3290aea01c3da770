"""The one safe Cholesky, triangular solves and quadrature."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from dgpax.linalg import (
    Dense,
    default_jitter,
    gauss_hermite,
    gaussian_expectation,
    inverse_lower,
    log_diagonal,
    roots_together,
    safe_cholesky,
)


def _spd(rng, size):
    a = rng.normal(size=(size, size))
    return jnp.asarray(a @ a.T + size * np.eye(size))


def test_well_conditioned_matrices_need_no_jitter(rng):
    K = _spd(rng, 5)
    result = safe_cholesky(K, jitter=0.0)
    np.testing.assert_allclose(result.factor, np.linalg.cholesky(K), rtol=1e-12)
    assert float(result.jitter) == 0.0 and bool(result.success)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_singular_matrices_climb_the_ladder_and_report_it(dtype):
    K = jnp.ones((50, 50), dtype) * 3.0
    result = jax.jit(lambda k: safe_cholesky(k, jitter=0.0))(K)
    assert result.factor.dtype == dtype
    assert bool(result.success) and float(result.jitter) > 0
    assert float(result.jitter) <= 3.0 * 100 * default_jitter(50, dtype)
    np.testing.assert_allclose(result.factor @ result.factor.T, K, atol=10 * float(result.jitter))


def test_each_batch_member_has_its_own_jitter():
    K = jnp.stack([jnp.eye(4), jnp.ones((4, 4)), -jnp.eye(4)])
    result = safe_cholesky(K, jitter=0.0)
    assert float(result.jitter[0]) == 0.0
    assert float(result.jitter[1]) > 0.0
    np.testing.assert_array_equal(result.success, [True, True, False])
    assert bool(jnp.all(jnp.isfinite(result.factor[:2])))


def test_slightly_indefinite_matrices_are_repaired(rng):
    K = _spd(rng, 6)
    values, vectors = np.linalg.eigh(K)
    values[0] = -1e-9
    broken = jnp.asarray(vectors @ np.diag(values) @ vectors.T)
    result = safe_cholesky(broken, jitter=0.0)
    assert bool(result.success) and 1e-9 <= float(result.jitter) < 1e-6


def test_a_factor_from_float64_takes_little_jitter_for_products_in_float32():
    z, x = np.linspace(-1.7, 1.7, 100), np.linspace(-2, 2, 501)
    K, k = (jnp.asarray(np.exp(-0.5 * (z[:, None] - other) ** 2)) for other in (z, x))
    (root,), (wide,) = (roots_together([Dense(K)], dtype) for dtype in (jnp.float32, jnp.float64))
    (own,) = roots_together([Dense(K.astype(jnp.float32))], jnp.float32)
    assert float(wide.jitter) < 1.1e-12 and float(own.jitter) > 1e-5
    assert root.solve(k.astype(jnp.float32)).dtype == jnp.float32
    np.testing.assert_allclose(root.jitter, 1e-6, rtol=1e-6)

    exact = np.linalg.solve(np.linalg.cholesky(K + 1e-6 * np.eye(100)), k)
    variance = 1 - jnp.sum(root.solve(k.astype(jnp.float32)) ** 2, axis=0)
    np.testing.assert_allclose(variance, 1 - np.sum(exact**2, axis=0), atol=1e-4)


@pytest.mark.slow
def test_derivatives_to_second_order(rng):
    K = _spd(rng, 4)
    check_grads(
        lambda k: safe_cholesky(jnp.asarray(k), jitter=0.0).factor,
        (K,),
        order=2,
        modes=("fwd", "rev"),
        atol=1e-6,
        rtol=1e-6,
    )


def test_vmap_agrees_with_batching(rng):
    K = jnp.stack([_spd(rng, 3), jnp.ones((3, 3))])
    batched = safe_cholesky(K, jitter=0.0)
    mapped = jax.vmap(lambda k: safe_cholesky(k, jitter=0.0))(K)
    np.testing.assert_allclose(batched.factor, mapped.factor, rtol=1e-14)
    np.testing.assert_allclose(batched.jitter, mapped.jitter)


@pytest.mark.parametrize("solved_up_to", [1, 4, 50])
def test_triangular_inverses_by_halves(rng, solved_up_to):
    """Sizes that are odd on the way down, and a batch."""
    L = np.linalg.cholesky(np.stack([_spd(rng, 13), _spd(rng, 13)]))
    inverse = inverse_lower(jnp.asarray(L), solved_up_to)
    np.testing.assert_allclose(inverse, np.linalg.inv(L), rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(jnp.triu(inverse, 1), 0.0)


def test_the_log_diagonal_and_its_derivative(rng):
    R = jnp.asarray(np.tril(rng.normal(size=(2, 4, 4))))
    np.testing.assert_allclose(log_diagonal(R), np.log(np.abs(np.diagonal(R, axis1=1, axis2=2))), rtol=1e-14)
    slopes = jax.grad(lambda R: jnp.sum(log_diagonal(R)))(R)
    np.testing.assert_allclose(slopes, [np.diag(1.0 / np.diagonal(root)) for root in R], rtol=1e-14)


def test_quadrature_is_exact_for_polynomials():
    nodes, weights = gauss_hermite(5)
    moments = [np.sum(weights * nodes**k) for k in range(10)]
    np.testing.assert_allclose(moments, [1, 0, 1, 0, 3, 0, 15, 0, 105, 0], atol=1e-12)


def test_gaussian_expectation_of_an_exponential():
    mean, variance = jnp.asarray([0.3, -1.0]), jnp.asarray([0.5, 2.0])
    value = gaussian_expectation(jnp.exp, mean, variance, order=40)
    np.testing.assert_allclose(value, np.exp(mean + variance / 2), rtol=1e-12)


def test_gaussian_expectation_at_zero_variance_has_finite_gradients():
    value, gradient = jax.value_and_grad(lambda v: gaussian_expectation(jnp.exp, jnp.zeros(()), v))(jnp.zeros(()))
    np.testing.assert_allclose(value, 1.0, rtol=1e-12)
    assert bool(jnp.isfinite(gradient))
