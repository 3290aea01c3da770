"""Derivatives and integrals of f, as inducing variables and as observations."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import interdomain as reference

import dgpax.kernels as dk
from dgpax import DeepGP, GPLayer
from dgpax.covariances import Kuf, Kuu
from dgpax.data import Dataset
from dgpax.errors import InputError, MissingRuleError
from dgpax.inducing import BoxIntegrals, Derivatives, Points
from dgpax.likelihoods import GaussianNoise
from dgpax.objectives import collapsed_bound, log_evidence
from dgpax.parameters import cast, fixed
from dgpax.posteriors import ExactPosterior
from dgpax.propagate import propagate

pytestmark = pytest.mark.slow

LENGTHSCALES, VARIANCE = np.array([0.9, 1.3]), 1.8
KERNEL = dk.RBF(LENGTHSCALES, VARIANCE)


def rbf(x, y):
    return reference.rbf_matrix(x, y, LENGTHSCALES, VARIANCE)


def some_of_each(rng):
    """Rows of every kind, and the same functionals as nodes and weights."""
    x, low = rng.normal(size=(2, 2)), rng.uniform(-1, 0, size=(2, 2))
    high, width = low + rng.uniform(0.3, 1.5, size=(2, 2)), rng.uniform(0.3, 0.8, size=(2, 2))
    rows = dk.observe(
        values=x, derivatives={0: x + 0.3, 1: x}, integrals=(low, high), averages=(low, high), weighted=(x, width)
    )
    boxes = [reference.box(*bounds) for bounds in zip(low, high, strict=True)]
    volumes = np.prod(high - low, axis=1)
    functionals = [
        *(reference.value(row) for row in x),
        *(reference.derivative(row, 0) for row in x + 0.3),
        *(reference.derivative(row, 1) for row in x),
        *boxes,
        *((nodes, weights / volume) for (nodes, weights), volume in zip(boxes, volumes, strict=True)),
        *(reference.gaussian(*row) for row in zip(x, width, strict=True)),
    ]
    return rows, functionals


def test_all_covariances_agree_with_quadrature_and_differences(rng):
    rows, functionals = some_of_each(rng)
    kernel = dk.Observed(KERNEL, 2)
    expected = reference.covariances(rbf, functionals, functionals)
    np.testing.assert_allclose(kernel.gram(rows), expected, atol=1e-9)
    np.testing.assert_allclose(kernel.diag(rows), np.diag(expected), atol=1e-9)
    assert np.linalg.eigvalsh(kernel.gram(rows)).min() > -1e-12
    plain = jnp.asarray(rng.normal(size=(3, 2)))
    expected = reference.covariances(rbf, functionals, [reference.value(row) for row in np.asarray(plain)])
    np.testing.assert_allclose(kernel.cross(rows, plain), expected, atol=1e-9)
    np.testing.assert_allclose(kernel.cross(dk.observe(values=plain), rows), expected.T, atol=1e-9)
    np.testing.assert_allclose(kernel.gram(plain), KERNEL.gram(plain), rtol=1e-14)


def test_sums_multiples_and_columns_integrate_too(rng):
    rows, functionals = some_of_each(rng)
    kernel = dk.Observed(0.5 * dk.RBF(0.9, 2.0).on(1) + dk.Constant(0.3), 2)

    def matrix(x, y):
        return reference.rbf_matrix(x[:, 1:], y[:, 1:], 0.9, 1.0) + 0.3

    np.testing.assert_allclose(kernel.gram(rows), reference.covariances(matrix, functionals, functionals), atol=1e-9)
    with pytest.raises(MissingRuleError, match=r"Matern32 has no closed form.*RBF"):
        dk.Observed(dk.Matern32(), 2).gram(rows)


@pytest.mark.parametrize(
    "kernel, curvature",
    [(dk.RBF(0.8, 1.5), 1.0), (dk.Matern32(0.8, 1.5), 3.0), (dk.Matern52(0.8, 1.5), 5 / 3)],
    ids=["rbf", "matern32", "matern52"],
)
def test_derivatives_at_coincident_points_are_the_spectral_moments(kernel, curvature, rng):
    """Var ∂f = −k''(0) = curvature · σ²/ℓ², uncorrelated with f and with the other derivative there."""
    x = rng.normal(size=(1, 2))
    rows = dk.observe(values=x, derivatives={0: x, 1: x})
    for K in (dk.Observed(kernel, 2).gram(rows), eqx.filter_jit(dk.Observed(kernel, 2).cross)(rows, rows)):
        np.testing.assert_allclose(K, 1.5 * np.diag([1.0, curvature / 0.64, curvature / 0.64]), atol=1e-12)


def test_derivative_inducing_variables_agree_with_differences_for_any_kernel(rng):
    z, x = rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
    kernel = dk.Matern52(LENGTHSCALES, VARIANCE) + dk.Polynomial(2, LENGTHSCALES, 0.5)
    left = [reference.derivative(row, column) for row, column in zip(z, (1, 0, 1), strict=True)]

    def matrix(a, b):
        return np.asarray(kernel.cross(jnp.asarray(a), jnp.asarray(b)))

    inducing = Derivatives(z, (1, 0, 1))
    expected = reference.covariances(matrix, left, [reference.value(row) for row in x])
    np.testing.assert_allclose(Kuf(inducing, kernel, jnp.asarray(x)[None])[0], expected, atol=1e-8)
    expected, apart = reference.covariances(matrix, left, left), ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(np.asarray(Kuu(inducing, kernel).to_dense()[0])[apart], expected[apart], atol=1e-8)


def test_box_inducing_variables_agree_with_quadrature(rng):
    low, x = rng.uniform(-1, 0, size=(3, 2)), rng.normal(size=(4, 2))
    high = low + rng.uniform(0.3, 1.5, size=(3, 2))
    boxes = [reference.box(*bounds) for bounds in zip(low, high, strict=True)]
    inducing = BoxIntegrals(low, high)
    np.testing.assert_allclose(
        Kuu(inducing, KERNEL).to_dense()[0], reference.covariances(rbf, boxes, boxes), atol=1e-12
    )
    expected = reference.covariances(rbf, boxes, [reference.value(row) for row in x])
    np.testing.assert_allclose(Kuf(inducing, KERNEL, jnp.asarray(x)[None])[0], expected, atol=1e-12)


def test_the_sine_from_its_derivatives_and_one_value():
    x, x_new = np.linspace(0, 2 * np.pi, 12)[:, None], np.linspace(0, 2 * np.pi, 50)[:, None]
    data = Dataset(
        dk.observe(values=np.zeros((1, 1)), derivatives={0: x}), jnp.asarray(np.concatenate([[[0.0]], np.cos(x)]))
    )
    model = DeepGP(GPLayer(dk.Observed(dk.RBF(1.5), 1)), GaussianNoise(fixed(1e-6)))
    posterior = ExactPosterior.condition(model, data)
    q = propagate(model.layers, posterior, jnp.asarray(x_new), posterior.begin(model.layers)).marginal()
    np.testing.assert_allclose(q.mean, np.sin(x_new), atol=1e-2)


def test_integrals_of_a_function_determine_it():
    edges = np.linspace(0, 2 * np.pi, 13)[:, None]
    rows = dk.observe(integrals=(edges[:-1], edges[1:]))
    data = Dataset(rows, jnp.asarray(np.cos(edges[:-1]) - np.cos(edges[1:])))
    model = DeepGP(GPLayer(dk.Observed(dk.RBF(1.5), 1)), GaussianNoise(fixed(1e-8)))
    posterior = ExactPosterior.condition(model, data)
    x_new = np.linspace(0, 2 * np.pi, 50)[:, None]
    q = propagate(model.layers, posterior, jnp.asarray(x_new), posterior.begin(model.layers)).marginal()
    np.testing.assert_allclose(q.mean, np.sin(x_new), atol=1e-2)


@eqx.filter_jit
def bound_of(model, data):
    return collapsed_bound(model, data).total


@eqx.filter_jit
@eqx.filter_grad
def slope_of(model, data):
    return log_evidence(model, data).total


def test_sparse_inference_over_observations(rng):
    """The bound with the observations themselves as inducing variables is the evidence; others stay below it."""
    rows, _ = some_of_each(rng)
    data = Dataset(rows, jnp.asarray(rng.normal(size=(len(rows), 1))))
    kernel, noise = dk.Observed(dk.RBF(LENGTHSCALES, VARIANCE), 2), GaussianNoise(0.3)
    exact = DeepGP(GPLayer(kernel), noise)
    evidence = log_evidence(exact, data).total
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(slope_of(exact, data)))
    z = jnp.asarray(rng.normal(size=(4, 2)))
    for inducing, tight in ((Points(rows), True), (Points(z), False), (Derivatives(z), False)):
        bound = bound_of(DeepGP(GPLayer(kernel, inducing=inducing), noise), data)
        assert abs(bound - evidence) < 1e-7 if tight else bound < evidence - 0.1


def test_float32_stays_float32(rng):
    rows = dk.observe(values=np.ones((1, 1), np.float32), integrals=(np.zeros((1, 1), "f4"), np.ones((1, 1), "f4")))
    kernel = cast(dk.Observed(dk.RBF(0.7), 1), jnp.float32)
    assert rows.dtype == kernel.gram(rows).dtype == kernel.diag(rows).dtype == jnp.float32
    high = dk.Observed(dk.RBF(0.7), 1).gram(rows.astype(jnp.float64))
    np.testing.assert_allclose(kernel.gram(rows), high, rtol=1e-5)


def test_bad_functionals_are_refused(rng):
    x = rng.normal(size=(3, 2))
    refused = {
        "from 0 to 1": lambda: Derivatives(x, 2),
        "needs one column, or 3": lambda: Derivatives(x, (0, 1)),
        "shape \\(M, D\\)": lambda: Derivatives(x[0]),
        "low < high in every entry. Swap": lambda: BoxIntegrals(x, x),
        "both of shape": lambda: BoxIntegrals(x, x[:2]),
        "column from 0 to 1": lambda: dk.observe(derivatives={2: x}),
        "integrals=.*low < high": lambda: dk.observe(integrals=(x, x - 1.0)),
        "positive widths": lambda: dk.observe(weighted=(x, 0.0 * x)),
        "locations of shape": lambda: dk.observe(values=x[0]),
        "at least one argument": dk.observe,
        "same number of inputs": lambda: dk.observe(values=x, derivatives={0: x[:, :1]}),
        "rows of 2, 5 or 9 columns; got 3": lambda: dk.Observed(KERNEL, 2).gram(jnp.ones((4, 3))),
        "num_inputs": lambda: dk.Observed(KERNEL, 0),
        "Matern12 have no derivative": lambda: dk.Observed(KERNEL * dk.Matern12(), 2),
        "White have no derivative": lambda: Kuu(Derivatives(x), KERNEL + dk.White()),
    }
    for message, attempt in refused.items():
        with pytest.raises(InputError, match=message):
            attempt()


@pytest.mark.parametrize("kernel", [dk.RBF(LENGTHSCALES, VARIANCE), dk.Matern52(0.8, 1.5)], ids=["rbf", "matern52"])
def test_derivative_covariances_agree_with_nested_automatic_differentiation(kernel, rng):
    """∂k(z, x)/∂z_c and ∂²k(z, z')/∂z_c∂z'_c', entry by entry from the kernel as a function of two points."""

    def k(a, b):
        return kernel.cross(a[None], b[None])[0, 0]

    z, x, column = jnp.asarray(rng.normal(size=(3, 2))), jnp.asarray(rng.normal(size=(4, 2))), (1, 0, 1)
    first, second = jax.jit(jax.jacrev(k)), jax.jit(jax.jacfwd(jax.jacrev(k), argnums=1))
    inducing = Derivatives(z, column)
    expected = [[first(z[i], x[j])[column[i]] for j in range(4)] for i in range(3)]
    np.testing.assert_allclose(Kuf(inducing, kernel, x[None])[0], expected, atol=1e-12)
    expected = [[second(z[i], z[j])[column[i], column[j]] for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(Kuu(inducing, kernel).to_dense()[0], expected, atol=1e-12)
