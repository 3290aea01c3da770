"""Kernel expectations under Gaussian inputs: quadrature, Monte Carlo, limits, chunks, what has no closed form."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import expectations as reference

from dgpax.distributions import Gaussian
from dgpax.errors import MissingRuleError
from dgpax.expectations import _expansion, expansion, psi0, psi1, psi2
from dgpax.inducing import Multiscale, Points
from dgpax.kernels import RBF, Constant, Linear, Matern32, White
from dgpax.parameters import cast

ARD, SLOPES = np.array([0.9, 1.6]), np.array([0.5, 2.0])
r_rbf, r_linear, r_constant, r_on = reference.rbf, reference.linear, reference.constant, reference.on


def _r_mixed(z, x):
    bumps = r_rbf(1.1, 1.3)(z, x) + r_rbf(ARD, 0.7)(z, x)
    return bumps + r_linear(SLOPES)(z, x) + 0.4


def _r_columns(z, x):
    return r_on(r_rbf(0.9, 1.0), 1)(z, x) + r_on(r_linear(0.5), 0)(z, x)


def _r_product(z, x):
    pair = 2.0 * r_on(r_rbf(0.9, 1.0), 1)(z, x) * r_on(r_rbf(1.2, 1.0), 0)(z, x)
    return pair + r_rbf(1.5, 1.0)(z, x) * (r_linear(0.6)(z, x) + 0.3)


KERNELS = {
    "RBF": (lambda: RBF(1.1, 1.3), r_rbf(1.1, 1.3)),
    "RBF-ARD": (lambda: RBF(ARD, 0.7), r_rbf(ARD, 0.7)),
    "Linear": (lambda: Linear(SLOPES), r_linear(SLOPES)),
    "Constant": (lambda: Constant(0.4), r_constant(0.4)),
    "columns": (lambda: RBF(0.9).on(1) + Linear(0.5).on(0), _r_columns),
    "sum": (lambda: RBF(1.1, 1.3) + RBF(ARD, 0.7) + Linear(SLOPES) + 0.4, _r_mixed),
    "product": (lambda: 2.0 * RBF(0.9).on(1) * RBF(1.2).on(0) + RBF(1.5) * (Linear(0.6) + 0.3), _r_product),
}  # fmt: skip


def _inputs(rng, num_columns=2, num_rows=3):
    mean, variance = rng.normal(size=(num_rows, num_columns)), rng.uniform(0.01, 0.5, size=(num_rows, num_columns))
    return Gaussian(jnp.asarray(mean), jnp.asarray(variance))


def _with_process_axis(x):
    return jax.tree.map(lambda leaf: leaf[..., None, :, :], x)


@eqx.filter_jit
def _psi(inducing, kernel, x):
    return tuple(psi(inducing, kernel, _with_process_axis(x)) for psi in (psi0, psi1, psi2))


@pytest.mark.parametrize("name", KERNELS)
def test_against_quadrature_and_without_uncertainty(name, rng):
    make, kernel = KERNELS[name]
    z, x = rng.normal(size=(4, 2)), _inputs(rng)
    for got, wanted in zip(_psi(Points(z), make(), x), reference.psi(kernel, z, x.mean, x.variance), strict=True):
        np.testing.assert_allclose(got[0], wanted, atol=1e-10)
    zero, one, two = _psi(Points(z), make(), Gaussian(x.mean, jnp.zeros_like(x.mean)))
    rows = np.asarray(x.mean)
    cross = kernel(z, rows)
    np.testing.assert_allclose(zero[0], np.diag(kernel(rows, rows)), atol=1e-12)
    np.testing.assert_allclose(one[0], cross, atol=1e-12)
    np.testing.assert_allclose(two[0], np.einsum("mn,kn->nmk", cross, cross), atol=1e-12)


def test_without_uncertainty_nothing_varies(rng):
    x = jnp.asarray(rng.normal(size=(1, 3, 2)))
    terms = expansion(Points(rng.normal(size=(4, 2))), KERNELS["sum"][0]())
    assert not np.any(eqx.filter_jit(terms.cross_covariance)(Gaussian(x, jnp.zeros_like(x))))


def test_one_column_and_windows(rng):
    """Windowed averages of an RBF process have bumps of other widths and heights."""
    z, widths, x = rng.normal(size=(3, 1)), rng.uniform(0.1, 1.0, size=(3, 1)), _inputs(rng, 1)

    def averaged(z, x):
        parts = [reference.grid(centre, width**2) for centre, width in zip(z, widths, strict=True)]
        return np.stack([weights @ r_rbf(0.9, 1.3)(nodes, x) for nodes, weights in parts])

    _, one, two = _psi(Multiscale(z, widths), RBF(0.9, 1.3), x)
    nodes_and_weights = [reference.grid(m, v) for m, v in zip(x.mean, x.variance, strict=True)]
    K = [averaged(z, nodes) for nodes, _ in nodes_and_weights]
    weights = [w for _, w in nodes_and_weights]
    np.testing.assert_allclose(one[0].T, [k @ w for k, w in zip(K, weights, strict=True)], atol=1e-10)
    np.testing.assert_allclose(two[0], [(k * w) @ k.T for k, w in zip(K, weights, strict=True)], atol=1e-10)


def test_white_noise_has_a_variance_only(rng):
    z, x = Points(rng.normal(size=(4, 2))), _inputs(rng)
    zero, one, two = _psi(z, White(0.3), x)
    np.testing.assert_allclose(zero, 0.3)
    assert one.shape[-2:] == (4, 3) and two.shape[-3:] == (3, 4, 4) and not one.any() and not two.any()
    plain, noisy = _psi(z, RBF(), x), _psi(z, RBF() + White(0.3), x)
    np.testing.assert_allclose(noisy[0], plain[0] + 0.3)
    np.testing.assert_allclose(noisy[2], plain[2])


def test_processes_with_parameters_and_points_of_their_own(rng):
    lengthscales, variances = rng.uniform(0.5, 2.0, size=(3, 2)), rng.uniform(0.5, 2.0, size=3)
    slopes, z, x = rng.uniform(0.5, 2.0, size=(3, 2)), rng.normal(size=(3, 4, 2)), _inputs(rng)
    together = _psi(Points(z), RBF(lengthscales, variances) + Linear(slopes), x)
    for p in range(3):
        alone = _psi(Points(z[p]), RBF(lengthscales[p], variances[p]) + Linear(slopes[p]), x)
        for every, one in zip(together, alone, strict=True):
            np.testing.assert_allclose(every[p], one[0], rtol=1e-12, atol=1e-13)


@pytest.mark.slow
def test_sample_axes_come_first(rng):
    draws = jax.tree.map(lambda *rows: jnp.stack(rows), *(_inputs(rng) for _ in range(2)))
    z, kernel = Points(rng.normal(size=(4, 2))), KERNELS["sum"][0]()
    for every, one in zip(
        _psi(z, kernel, draws), _psi(z, kernel, jax.tree.map(lambda leaf: leaf[1], draws)), strict=True
    ):
        np.testing.assert_allclose(every[1], one, rtol=1e-12)


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_far_away_and_very_uncertain_inputs_stay_finite(dtype):
    z, mean = jnp.asarray([[0.0], [60.0]], dtype), jnp.asarray([[-500.0], [30.0]], dtype)
    variance, kernel = jnp.asarray([[1e4], [1e8]], dtype), cast(RBF(), dtype)

    @jax.jit
    @jax.value_and_grad
    def total(mean):
        return jnp.sum(psi2(Points(z), kernel, Gaussian(mean[None], variance[None])))

    value, slope = total(mean)
    assert np.isfinite(value) and value >= 0 and np.all(np.isfinite(slope)) and value.dtype == dtype


def test_weighted_covariances_in_chunks(rng, monkeypatch):
    terms, x = expansion(Points(rng.normal(size=(4, 2))), KERNELS["sum"][0]()), _inputs(rng, num_rows=7)
    rows, weights = _with_process_axis(x), jnp.asarray(rng.normal(size=(3, 4, 4)))
    wanted = jnp.einsum("pmk,qnmk->pn", weights, eqx.filter_jit(terms.cross_covariance)(rows))
    for numbers in (2**20, 3 * 16 * 2):
        monkeypatch.setattr(_expansion, "CHUNK_NUMBERS", numbers)
        np.testing.assert_allclose(eqx.filter_jit(terms.weighted_covariance)(weights, rows), wanted, atol=1e-12)


def test_memory_does_not_grow_with_rows_times_inducing_points_squared(rng):
    M, N = 50, 20_000
    z, weights = rng.normal(size=(M, 2)), jnp.asarray(rng.normal(size=(1, M, M)))

    def total(lengthscale, mean):
        rows = Gaussian(mean, 0.1 * jnp.ones_like(mean))
        return jnp.sum(expansion(Points(z), RBF(lengthscale)).weighted_covariance(weights, rows))

    rows = jax.ShapeDtypeStruct((1, N, 2), jnp.float64)
    compiled = jax.jit(jax.grad(total)).lower(jnp.asarray(1.0), rows).compile()
    memory = compiled.memory_analysis()
    assert memory is not None and memory.temp_size_in_bytes < N * M * M * 8 / 3


def test_float32(rng):
    full = Points(rng.normal(size=(4, 2))), KERNELS["sum"][0](), _inputs(rng)
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), full)
    for low, high in zip(_psi(*half), _psi(*full), strict=True):
        assert low.dtype == jnp.float32
        np.testing.assert_allclose(low, high, rtol=2e-5, atol=2e-5)


def test_what_has_no_closed_form_says_so():
    x = Gaussian(jnp.zeros((1, 2, 1)), jnp.ones((1, 2, 1)))
    with pytest.raises(MissingRuleError, match=r"@expansion.register\(Points, Matern32\)"):
        psi1(Points(jnp.zeros((1, 1))), RBF() + Matern32(), x)
    with pytest.raises(MissingRuleError, match="two kernels with a Linear part"):
        psi0(Points(jnp.zeros((1, 1))), Linear() * Linear(), x)


@pytest.mark.slow
def test_against_a_million_draws(rng):
    make, kernel = KERNELS["sum"]
    z, x, size = rng.normal(size=(3, 2)), _inputs(rng, num_rows=1), 10**6
    K = kernel(z, np.asarray(x.mean) + np.sqrt(x.variance) * rng.normal(size=(size, 2)))
    _, one, two = _psi(Points(z), make(), x)
    np.testing.assert_array_less(np.abs(one[0, :, 0] - K.mean(axis=1)), 4 * K.std(axis=1) / size**0.5)
    for m in range(3):
        products = K[m] * K
        np.testing.assert_array_less(np.abs(two[0, 0, m] - products.mean(axis=1)), 4 * products.std(axis=1) / size**0.5)
