"""Every kernel against its formula, against scikit-learn, and its derivatives where two points coincide."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference.kernels as ref
import sklearn.gaussian_process.kernels as sk

import dgpax.kernels as dk
from dgpax.errors import InputError
from dgpax.parameters import Positive, cast, fixed

VARIANCE = 1.3


def wave(x, xp=jnp):
    return 1.0 + 0.4 * xp.sin(x)


@cache
def cases(D: int) -> dict:
    """name: (kernel, function of two points)."""
    l = np.linspace(0.6, 1.5, D)
    rbf, rbf_ref = dk.RBF(l, VARIANCE), partial(ref.rbf, lengthscale=l, variance=VARIANCE)
    m32, m32_ref = dk.Matern32(0.7, 0.8), partial(ref.matern32, lengthscale=0.7, variance=0.8)
    lin, lin_ref = dk.Linear(l), partial(ref.linear, variance=l)
    arc = {
        f"ArcCosine{n}": (
            dk.ArcCosine(n, l, 0.4, VARIANCE),
            partial(ref.arc_cosine, order=n, weight_variance=l, bias_variance=0.4, variance=VARIANCE),
        )
        for n in range(3)
    }
    return arc | {
        "RBF": (rbf, rbf_ref),
        "RBF, one length scale": (dk.RBF(0.7), partial(ref.rbf, lengthscale=0.7, variance=1.0)),
        "Matern12": (dk.Matern12(l, VARIANCE), partial(ref.matern12, lengthscale=l, variance=VARIANCE)),
        "Matern32": (m32, m32_ref),
        "Matern52": (dk.Matern52(l, VARIANCE), partial(ref.matern52, lengthscale=l, variance=VARIANCE)),
        "RationalQuadratic": (
            dk.RationalQuadratic(l, VARIANCE, 0.7),
            partial(ref.rational_quadratic, lengthscale=l, variance=VARIANCE, alpha=0.7),
        ),
        "Periodic": (
            dk.Periodic(2.0 * l, 1.5 * l, VARIANCE),
            partial(ref.periodic, period=2.0 * l, lengthscale=1.5 * l, variance=VARIANCE),
        ),
        "Cosine": (dk.Cosine(l, VARIANCE), partial(ref.cosine, lengthscale=l, variance=VARIANCE)),
        "Linear": (lin, lin_ref),
        "Polynomial": (dk.Polynomial(3, l, 0.4), partial(ref.polynomial, degree=3, variance=l, offset=0.4)),
        "Constant": (dk.Constant(VARIANCE), partial(ref.constant, variance=VARIANCE)),
        "Gibbs": (
            dk.gibbs(wave, VARIANCE),
            partial(
                ref.paciorek,
                correlation=lambda r: np.exp(-0.5 * r**2),
                lengthscale_function=partial(wave, xp=np),
                variance=VARIANCE,
            ),
        ),
        "Paciorek": (
            dk.Paciorek(dk.Matern12(l, VARIANCE), lambda x: wave(x[..., :1])),
            partial(
                ref.paciorek,
                correlation=lambda r: np.exp(-r),
                lengthscale_function=lambda x: wave(x[:1], np) * l,
                variance=VARIANCE,
            ),
        ),
        "ChangePoints": (
            dk.ChangePoints([rbf, lin, m32], [-0.3, 0.4], 3.0, column=D - 1),
            partial(
                ref.change_points,
                kernels=[rbf_ref, lin_ref, m32_ref],
                locations=[-0.3, 0.4],
                steepness=3.0,
                column=D - 1,
            ),
        ),
    }


@pytest.mark.parametrize("D", [1, 3, 20])
@pytest.mark.parametrize("name", cases(1))
def test_kernels_equal_their_formulas(name, D, rng):
    """To 1e-12 also for D = 20, where `cross` uses matrix products: r² is off by about 1e-15 of the squared norms.

    Only where points coincide (see below) does that become more, √1e-15, in a function of r.
    """
    kernel, formula = cases(D)[name]
    x, y = rng.normal(size=(2, 4, D)) / np.sqrt(D)
    expected = ref.matrix(formula, x, x)
    np.testing.assert_allclose(kernel(jnp.asarray(x), jnp.asarray(y)), ref.matrix(formula, x, y), 1e-12, 1e-12)
    np.testing.assert_allclose(kernel(jnp.asarray(x)), expected, 1e-12, 1e-12)
    np.testing.assert_allclose(kernel.diag(jnp.asarray(x)), np.diag(expected), 1e-12, 1e-12)


def test_white_noise_is_in_gram_and_diag_but_not_between_sets():
    kernel, x = dk.White(0.3), jnp.zeros((3, 2))
    np.testing.assert_allclose(kernel(x), 0.3 * np.eye(3), rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(x), np.full(3, 0.3), rtol=1e-12)
    np.testing.assert_array_equal(kernel(x, x[:2]), np.zeros((3, 2)))


@pytest.mark.parametrize("kind", [dk.RBF, dk.Matern12, dk.Matern32])
def test_points_coincide_up_to_rounding_in_many_columns(kind, rng):
    x = jnp.asarray(rng.normal(size=(6, 20)))
    kernel = kind(2.0)
    np.testing.assert_array_equal(np.diag(kernel(jnp.concatenate([x, x]))[:6, 6:]), np.ones(6))
    np.testing.assert_array_equal(np.diag(kernel(x, x)), np.ones(6))
    np.testing.assert_array_equal(np.diag(kernel(x, x * (1.0 + 2e-16))), np.ones(6))


def test_values_that_are_not_finite_are_not_hidden():
    x = jnp.array([[0.0], [jnp.nan], [0.0]])
    np.testing.assert_array_equal(dk.RBF()(x), [[1.0, np.nan, 1.0], [np.nan] * 3, [1.0, np.nan, 1.0]])
    np.testing.assert_array_equal(dk.RBF()(x[:1], jnp.array([[jnp.inf]])), [[0.0]])
    assert bool(jnp.all(jnp.isnan(dk.RBF()(jnp.full((2, 20), jnp.nan), jnp.ones((2, 20))))))


LENGTHSCALES: Any = np.array([0.7, 1.1, 1.9])
SKLEARN = {
    "RBF": (dk.RBF(LENGTHSCALES), sk.RBF(LENGTHSCALES)),
    "Matern12": (dk.Matern12(LENGTHSCALES), sk.Matern(LENGTHSCALES, nu=0.5)),
    "Matern32": (dk.Matern32(LENGTHSCALES), sk.Matern(LENGTHSCALES, nu=1.5)),
    "Matern52": (dk.Matern52(LENGTHSCALES), sk.Matern(LENGTHSCALES, nu=2.5)),
    "RationalQuadratic": (dk.RationalQuadratic(0.8, 1.0, 0.6), sk.RationalQuadratic(0.8, 0.6)),
    "Periodic": (dk.Periodic(1.7, 0.9).on(0), sk.ExpSineSquared(0.9, 1.7)),
    "Linear": (dk.Linear(1.0) + dk.Constant(0.49), sk.DotProduct(0.7)),
    "Constant": (dk.Constant(0.3) * dk.RBF(0.8), sk.ConstantKernel(0.3) * sk.RBF(0.8)),
    "White": (dk.White(0.3) + dk.RBF(0.8), sk.WhiteKernel(0.3) + sk.RBF(0.8)),
}


@pytest.mark.parametrize("name", SKLEARN)
def test_kernels_equal_those_of_scikit_learn(name, rng):
    ours, theirs = SKLEARN[name]
    x, y = rng.normal(size=(2, 4, 3))
    theirs_x, theirs_y = (x[:, :1], y[:, :1]) if name == "Periodic" else (x, y)
    np.testing.assert_allclose(ours(jnp.asarray(x), jnp.asarray(y)), theirs(theirs_x, theirs_y), 1e-12, 1e-12)
    np.testing.assert_allclose(ours(jnp.asarray(x)), theirs(theirs_x), 1e-12, 1e-12)
    np.testing.assert_allclose(ours.diag(jnp.asarray(x)), theirs.diag(theirs_x), 1e-12, 1e-12)


def curvatures(l) -> dict:
    """name: (kernel, ∂²k/∂x∂x' at x = x'). Matérn 1/2 has none there; the library says 0."""
    inverse_squares = np.diag(VARIANCE / l**2)
    return {
        "RBF": (dk.RBF(l, VARIANCE), inverse_squares),
        "Matern12": (dk.Matern12(l, VARIANCE), 0.0 * inverse_squares),
        "Matern32": (dk.Matern32(l, VARIANCE), 3.0 * inverse_squares),
        "Matern52": (dk.Matern52(l, VARIANCE), 5.0 / 3.0 * inverse_squares),
        "RationalQuadratic": (dk.RationalQuadratic(l, VARIANCE, 0.7), inverse_squares),
        "Periodic": (dk.Periodic(2.0 * l, l, VARIANCE), np.diag(4.0 * np.pi**2 * VARIANCE / (2.0 * l**2) ** 2)),
        "Cosine": (dk.Cosine(l, VARIANCE), 4.0 * np.pi**2 * VARIANCE / np.outer(l, l)),
    }


def between(kernel, method: str, a, b, others):
    """k(a, b), with other points in the same call."""
    if method == "gram":
        return kernel.gram(jnp.concatenate([a[None], b[None], others]))[0, 1]
    return kernel.cross(a[None], jnp.concatenate([b[None], others]))[0, 0]


@pytest.mark.parametrize(
    ("D", "method", "dtype", "tolerance"),
    [(D, "cross", *precision) for D in (1, 3, 20) for precision in ((jnp.float64, 1e-10), (jnp.float32, 1e-4))]
    + [(3, "gram", jnp.float64, 1e-10)],
)
def test_derivatives_at_coincident_points(D, method, dtype, tolerance, rng):
    """∂k/∂x = 0 and ∂²k/∂x∂x' as the formula says, in compiled code, by differences and by matrix products."""
    table = curvatures(np.linspace(0.6, 1.5, D))
    points = jnp.asarray(rng.normal(size=(4, D)), dtype)

    @jax.jit
    def derivatives(x, direction, others):
        """The slope, and the curvature times a direction."""
        slopes = {name: jax.grad(partial(between, cast(kernel, dtype), method)) for name, (kernel, _) in table.items()}
        return {n: jax.jvp(lambda b, f=f: f(x, b, others), (x,), (direction,)) for n, f in slopes.items()}

    for name, (slope, curvature) in derivatives(points[0], points[1], points[2:]).items():
        expected = table[name][1] @ np.asarray(points[1])
        assert slope.dtype == curvature.dtype == dtype
        np.testing.assert_allclose(slope, 0.0, atol=tolerance, err_msg=name)
        np.testing.assert_allclose(curvature, expected, tolerance, tolerance * np.max(np.abs(expected)), err_msg=name)


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_derivatives_are_finite_for_points_that_nearly_coincide(dtype):
    x = jnp.asarray([[0.0], [1e-12], [0.7], [-0.9]], dtype)
    weights = jnp.zeros((4, 4), dtype).at[0, 1].set(1.0)

    @jax.jit
    def derivatives(x):
        def weighted(kernel, x):
            return jnp.sum(weights * kernel.gram(x))

        kernels = {name: cast(kernel, dtype) for name, (kernel, _) in curvatures(np.array([0.6])).items()}
        return {n: jax.jvp(jax.grad(partial(weighted, k)), (x,), (1.0 + x,)) for n, k in kernels.items()}

    found = derivatives(x)
    assert all(bool(jnp.all(jnp.isfinite(part))) for part in jax.tree.leaves(found))
    steepest = VARIANCE / 0.6 * np.array([1.0, -1.0]) if dtype == jnp.float64 else np.zeros(2)  # float32: one point
    np.testing.assert_allclose(found["Matern12"][0][:2, 0], steepest, atol=1e-2)
    np.testing.assert_allclose(found["Matern52"][0], 0.0, atol=1e-4)


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_hyperparameter_hessians_with_duplicate_rows(dtype, rng):
    """Between equal rows k = variance, whatever the length scales: the gradient is (0, 0, 1), the Hessian zero."""
    x = jnp.asarray(rng.normal(size=(3, 2))[[0, 0, 1]], dtype)
    equal = jnp.zeros((3, 3), dtype).at[:2, :2].set(0.25)
    kinds = (dk.RBF, dk.Matern12, dk.Matern32, dk.Matern52, dk.RationalQuadratic, dk.Cosine, partial(dk.Periodic, 1.3))

    @jax.jit
    def derivatives(theta, direction):
        def mean_between_equal_rows(kind, theta):
            return jnp.sum(equal * cast(kind(fixed(theta[:2]), fixed(theta[2])), dtype).gram(x))

        slopes = [jax.grad(partial(mean_between_equal_rows, kind)) for kind in kinds]
        return [jax.jvp(slope, (theta,), (direction,)) for slope in slopes]

    tolerance = 1e-10 if dtype == jnp.float64 else 2e-4
    for slope, curvature in derivatives(jnp.asarray([0.7, 1.2, VARIANCE], dtype), jnp.asarray([0.4, -1.0, 0.6], dtype)):
        assert slope.dtype == curvature.dtype == dtype
        np.testing.assert_allclose(slope, [0.0, 0.0, 1.0], atol=tolerance)
        np.testing.assert_allclose(curvature, 0.0, atol=tolerance)


@pytest.mark.parametrize("name", cases(3))
def test_derivatives_equal_finite_differences_of_the_formulas(name, rng):
    kernel, formula = cases(3)[name]
    x, y, v = rng.normal(size=(2, 3)), rng.normal(size=(3, 3)), rng.normal(size=(2, 3))

    def at(t, h):
        return ref.matrix(formula, x + (t + h) * v, y) - ref.matrix(formula, x + (t - h) * v, y)

    @jax.jit
    def along(t):
        slope = jax.jacfwd(lambda t: kernel.cross(x + t * v, jnp.asarray(y)))
        return slope(t), jax.jacfwd(slope)(t)

    slope, curvature = along(0.0)
    np.testing.assert_allclose(slope, at(0.0, 1e-5) / 2e-5, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(curvature, (at(1e-4, 1e-4) - at(-1e-4, 1e-4)) / 4e-8, rtol=1e-4, atol=1e-5)


def test_one_parameter_with_a_batch_axis_is_enough(rng):
    x = jnp.asarray(rng.normal(size=(4, 2)))
    for kernel in (
        dk.RationalQuadratic(alpha=jnp.array([0.5, 2.0])),
        dk.Paciorek(dk.RBF(jnp.array([[0.5], [2.0]])), wave),
        dk.ArcCosine(0, bias_variance=jnp.array([0.5, 2.0])),
        dk.ChangePoints([dk.RBF(), dk.White()], jnp.array([[0.5], [-0.5]])),
    ):
        assert np.shape(kernel.gram(x)) == (2, 4, 4) and np.shape(kernel.diag(x)) == (2, 4)
        np.testing.assert_allclose(kernel.diag(x), np.diagonal(kernel.gram(x), axis1=-2, axis2=-1), rtol=1e-12)


@pytest.mark.parametrize(
    ("evaluate", "words"),
    [
        (lambda x: dk.RBF([1.0, 2.0]).gram(x), "2 length scales .* 3 columns"),
        (lambda x: dk.Matern12([1.0, 2.0]).diag(x), "2 length scales"),
        (lambda x: dk.Linear([1.0, 2.0]).gram(x), "2 variances .* 3 columns"),
        (lambda x: dk.Linear([1.0, 2.0]).diag(x[:, :1]), "2 variances .* 1 columns"),
        (lambda x: dk.gibbs(lambda x: x[..., :2]).gram(x), "length-scale function"),
        (lambda x: dk.ChangePoints([dk.RBF(), dk.RBF()], [0.0], column=3).diag(x), "column 3"),
        (lambda x: dk.ChangePoints([dk.RBF(), dk.RBF()], [0.0, 1.0]), "needs 1 locations"),
        (lambda x: dk.Polynomial(0), "degree"),
        (lambda x: dk.ArcCosine(3), "0, 1 or 2"),
    ],
)
def test_errors_say_what_was_wrong(evaluate, words):
    with pytest.raises(InputError, match=words):
        evaluate(jnp.ones((2, 3)))


def test_a_parameter_can_be_given_ready_made():
    kernel = dk.RBF(Positive(1e-9, floor=0.0), variance=fixed(2.0))
    np.testing.assert_allclose(kernel(jnp.zeros((1, 1)), jnp.full((1, 1), 1e-9)), [[2.0 * np.exp(-0.5)]], rtol=1e-12)
