"""Kernels as an algebra: the laws hold for any shapes and hyperparameters."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dgpax.kernels as dk
from dgpax.errors import InputError, InputTypeError

few = settings(max_examples=8, deadline=None, derandomize=True, database=None)
positive = st.floats(0.3, 3.0)
KINDS = (dk.RBF, dk.Matern12, dk.Matern32, dk.Matern52, dk.RationalQuadratic, dk.Cosine)
stationary = st.builds(lambda kind, l, v: kind(l, v), st.sampled_from(KINDS), positive, positive)
others = st.one_of(
    st.builds(dk.Linear, positive),
    st.builds(dk.Constant, positive),
    st.builds(dk.White, positive),
    st.builds(lambda order, b: dk.ArcCosine(order, bias_variance=b), st.integers(0, 2), positive),
)
kernels = st.one_of(stationary, others)
# (N, M, D): a few shapes that all tests share, since every new one is compiled anew
shapes = st.sampled_from([(1, 1, 1), (4, 4, 3), (3, 5, 2)])


@st.composite
def inputs(draw):
    """x [N, D] and y [M, D] with entries between −2 and 2."""
    N, M, D = draw(shapes)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    return jnp.asarray(rng.uniform(-2.0, 2.0, (N, D))), jnp.asarray(rng.uniform(-2.0, 2.0, (M, D)))


def assert_same(one: dk.AbstractKernel, other: dk.AbstractKernel, points) -> None:
    x, y = points
    np.testing.assert_allclose(one(x), other(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(one(x, y), other(x, y), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(one.diag(x), other.diag(x), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@few
@given(kernels, kernels, inputs())
def test_sums_and_products_commute(k1, k2, points):
    assert_same(k1 + k2, k2 + k1, points)
    assert_same(k1 * k2, k2 * k1, points)


@pytest.mark.slow
@few
@given(kernels, kernels, kernels, inputs())
def test_sums_and_products_are_associative_and_flat(k1, k2, k3, points):
    assert_same((k1 + k2) + k3, k1 + (k2 + k3), points)
    assert_same((k1 * k2) * k3, k1 * (k2 * k3), points)
    assert len(((k1 + k2) + (k3 + k1)).kernels) == 4
    assert len(((k1 * k2) * (k3 * k1)).kernels) == 4


@few
@given(kernels, kernels, kernels, inputs())
def test_products_distribute_over_sums(k1, k2, k3, points):
    assert_same(k1 * (k2 + k3), k1 * k2 + k1 * k3, points)


@few
@given(kernels, kernels, positive, inputs())
def test_numbers_scale_shift_and_raise(k1, k2, c, points):
    assert_same(k1 * c, c * k1, points)
    assert_same(2.0 * k1, k1 + k1, points)
    assert_same(c * (k1 + k2), c * k1 + c * k2, points)
    assert_same(k1 + c, c + k1, points)
    assert_same(k1 + c, k1 + dk.Constant(c), points)
    assert_same(k1**2, k1 * k1, points)
    assert_same(k1**3, k1 * k1 * k1, points)
    assert_same(0 + k1 + k2, k1 + k2, points)  # as in sum([k1, k2])
    assert_same(np.float64(c) * k1, k1 * c, points)


@few
@given(kernels, kernels, positive, inputs())
def test_what_is_built_stays_positive_semi_definite_and_consistent(k1, k2, c, points):
    x, y = points
    for kernel in (k1 + k2, k1 * k2, c * k1, k1**2, k1 + c):
        gram = np.asarray(kernel(x))
        np.testing.assert_allclose(gram, gram.T, rtol=1e-13, atol=1e-14)
        assert np.linalg.eigvalsh(gram)[0] >= -1e-10 * np.trace(gram)
        np.testing.assert_allclose(kernel.diag(x), np.diag(gram), rtol=1e-12)
        np.testing.assert_allclose(kernel(x, y), kernel(y, x).T, rtol=1e-12, atol=1e-13)


@few
@given(kernels, inputs(), st.data())
def test_active_dimensions_equal_sliced_inputs(kernel, points, data):
    x, y = points
    columns = data.draw(st.lists(st.integers(0, x.shape[1] - 1), min_size=1, max_size=x.shape[1], unique=True))
    kernel = kernel + dk.Linear(0.5)  # so that all three methods depend on the columns
    chosen = kernel.on(*columns)
    np.testing.assert_array_equal(chosen(x), kernel(x[:, columns]))
    np.testing.assert_array_equal(chosen(x, y), kernel(x[:, columns], y[:, columns]))
    np.testing.assert_array_equal(chosen.diag(x), kernel.diag(x[:, columns]))


@few
@given(kernels, inputs())
def test_warps_equal_transformed_inputs(kernel, points):
    x, y = points
    kernel = kernel + dk.Linear(0.5)
    warped = kernel.warp(jnp.sinh)
    np.testing.assert_array_equal(warped(x), kernel(jnp.sinh(x)))
    np.testing.assert_array_equal(warped(x, y), kernel(jnp.sinh(x), jnp.sinh(y)))
    np.testing.assert_array_equal(warped.diag(x), kernel.diag(jnp.sinh(x)))


@few
@given(st.sampled_from(KINDS), inputs())
def test_white_noise_is_only_ever_on_the_diagonal_of_gram(kind, points):
    x, _ = points
    kernel = 2.0 * (kind() + dk.White(0.3))
    np.testing.assert_allclose(kernel(x) - kernel(x, x), 0.6 * np.eye(len(x)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("number", [-1.0, 0.0, float("nan"), float("inf")])
def test_only_positive_multiples(number):
    with pytest.raises(InputError, match="positive number"):
        _ = dk.RBF() * number


def test_only_variances_can_be_added():
    with pytest.raises(InputError, match="at least 0"):
        _ = dk.RBF() + -1.0


@pytest.mark.parametrize("exponent", [0, -2])
def test_only_whole_powers(exponent):
    with pytest.raises(InputError, match="whole number, at least 1"):
        _ = dk.RBF() ** exponent


@pytest.mark.parametrize("combine", [lambda k, o: k + o, lambda k, o: o + k, lambda k, o: k * o, lambda k, o: o * k])
@pytest.mark.parametrize("thing", ["text", None, [1.0]])
def test_only_kernels_and_numbers_combine(combine, thing):
    with pytest.raises(InputTypeError, match="must be a kernel or a Python number"):
        combine(dk.RBF(), thing)


@pytest.mark.parametrize("columns", [(), (-1,), (0, 0)])
def test_active_dimensions_must_be_distinct_columns(columns):
    with pytest.raises(InputError, match="distinct column numbers"):
        dk.RBF().on(*columns)


def test_active_dimensions_must_exist():
    with pytest.raises(InputError, match="the input has 2 columns"):
        dk.RBF().on(2)(jnp.zeros((1, 2)))


@pytest.mark.parametrize("kind", [dk.Sum, dk.Product])
def test_nothing_can_not_be_combined(kind):
    with pytest.raises(InputError, match="at least one kernel"):
        kind()
