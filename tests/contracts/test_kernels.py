"""What every kernel promises, whatever its formula."""

from __future__ import annotations

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import ClosedJaxpr, Jaxpr

import dgpax.kernels as dk
from contracts.completeness import final_subclasses
from dgpax.parameters import cast

N, M, D = 5, 4, 2


def wave(x):
    return 1.0 + 0.3 * jnp.sin(x)


def with_squares(x):
    return jnp.concatenate([x, x**2], axis=-1)


def functionals(x):
    """Rows for `Observed` on one input: x, weight, direction, box and Gaussian widths."""
    return jnp.concatenate([x[..., :1], x[..., :2], 1.0 + x[..., :2] ** 2], axis=-1)


# One row per kernel, from a variance v [...] and length scales l [..., D]: a leading axis makes several kernels.
KERNELS = {
    dk.RBF: lambda v, l: dk.RBF(l, v),
    dk.Matern12: lambda v, l: dk.Matern12(l, v),
    dk.Matern32: lambda v, l: dk.Matern32(l, v),
    dk.Matern52: lambda v, l: dk.Matern52(l, v),
    dk.RationalQuadratic: lambda v, l: dk.RationalQuadratic(l, v, 0.7 * v),
    dk.Periodic: lambda v, l: dk.Periodic(1.5 * l, l, v),
    dk.Cosine: lambda v, l: dk.Cosine(3.0 * l, v),
    dk.Linear: lambda v, l: dk.Linear(l),
    dk.Polynomial: lambda v, l: dk.Polynomial(3, l, v),
    dk.ArcCosine: lambda v, l: dk.ArcCosine(1, l, 0.5 * v, v),
    dk.Constant: lambda v, l: dk.Constant(v),
    dk.White: lambda v, l: dk.White(v),
    dk.MarkedWhite: lambda v, l: dk.MarkedWhite(l),
    dk.Paciorek: lambda v, l: dk.Paciorek(dk.RBF(l, v), wave),
    dk.ChangePoints: lambda v, l: dk.ChangePoints([dk.Constant(v), dk.Linear(l)], 0.3 * v[..., None], 2.0 * v),
    dk.Sum: lambda v, l: dk.Sum(dk.Cosine(l, v), dk.Linear(l)),
    dk.Product: lambda v, l: dk.Product(dk.RBF(l, v), dk.Linear(l)),
    dk.Scaled: lambda v, l: dk.Scaled(dk.Linear(l), 2.5),
    dk.Power: lambda v, l: dk.Power(dk.RBF(l, v), 3),
    dk.ActiveDimensions: lambda v, l: dk.ActiveDimensions(dk.Linear(l[..., 1:2]), (1,)),
    dk.Observed: lambda v, l: dk.Observed(dk.RBF(l, v), l.shape[-1]),
    dk.Warped: lambda v, l: dk.Warped(dk.Linear(l[..., :1]), with_squares),
    dk.Convolutional: lambda v, l: dk.Convolutional(dk.RBF(l[..., :1], v), (1, l.shape[-1]), (1, 1)),
}
NOISE = {dk.White, dk.MarkedWhite}  # nothing between two sets of points
STACKED = {dk.Separate}  # with an axis of processes of their own; see tests/test_multioutput.py
VARIANCES, LENGTHSCALES = np.array([1.3, 0.6]), np.array([[0.8, 1.1], [1.4, 0.5]])

each_kernel = pytest.mark.parametrize("kind", KERNELS, ids=lambda kind: kind.__name__)


def build(kind, member: int | slice = 0, dtype=jnp.float64):
    return cast(KERNELS[kind](VARIANCES[member], LENGTHSCALES[member]), dtype)


def points(rng, *shape, dtype=jnp.float64):
    return jnp.asarray(rng.normal(size=shape), dtype)


@eqx.filter_jit
def evaluate(kernel, x, y):
    return kernel.gram(x), kernel.cross(x, y), kernel.diag(x)


@eqx.filter_jit
def evaluate_many(kernel, x, y):
    """By broadcasting, [S, P, ...], and by `vmap` over kernels and then over inputs, [P, S, ...]."""
    over_inputs = jax.vmap(evaluate, in_axes=(None, 0, 0))
    over_kernels = eqx.filter_vmap(over_inputs, in_axes=(eqx.if_array(0), None, None))
    return evaluate(kernel, x[:, None], y[:, None]), over_kernels(kernel, x, y)


def test_every_kernel_has_a_row():
    assert set(KERNELS) | STACKED == final_subclasses(dk.AbstractKernel)


@each_kernel
def test_gram_is_symmetric_positive_semi_definite_and_agrees_with_diag_and_cross(kind, rng):
    kernel, x, y = build(kind), points(rng, N, D), points(rng, M, D)
    gram, cross, diag = (np.asarray(part) for part in evaluate(kernel, x, y))
    assert (gram.shape, cross.shape, diag.shape) == ((N, N), (N, M), (N,))
    np.testing.assert_allclose(gram, gram.T, rtol=1e-14, atol=1e-14)
    assert np.linalg.eigvalsh(gram)[0] >= -1e-10 * np.trace(gram)
    np.testing.assert_allclose(diag, np.diag(gram), rtol=1e-12, atol=1e-12)
    white = np.diag(diag) if kind in NOISE else 0.0
    without_jit = kernel.cross(x, x)
    np.testing.assert_allclose(without_jit + white, gram, rtol=1e-12, atol=1e-12)


@each_kernel
def test_several_kernels_and_several_inputs_in_one_call_equal_single_calls(kind, rng):
    together, x, y = build(kind, slice(None)), points(rng, 3, N, D), points(rng, 3, M, D)
    at_once, mapped = evaluate_many(together, x, y)
    assert [part.shape for part in at_once] == [(3, 2, N, N), (3, 2, N, M), (3, 2, N)]
    for s, p in np.ndindex(3, 2):
        for batched, over_kernels, alone in zip(at_once, mapped, evaluate(build(kind, p), x[s], y[s]), strict=True):
            np.testing.assert_allclose(batched[s, p], alone, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(over_kernels[p, s], alone, rtol=1e-12, atol=1e-13)


@each_kernel
def test_float32_stays_float32_and_agrees_with_float64(kind, rng):
    x, y = points(rng, N, D, dtype=jnp.float32), points(rng, M, D, dtype=jnp.float32)
    low = evaluate(build(kind, dtype=jnp.float32), x, y)
    high = evaluate(build(kind), x.astype(jnp.float64), y.astype(jnp.float64))
    for part, expected in zip(low, high, strict=True):
        assert part.dtype == jnp.float32
        np.testing.assert_allclose(part, expected, rtol=2e-5, atol=2e-5)


@each_kernel
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_first_and_second_derivatives_are_finite_at_coincident_points(kind, dtype, rng):
    kernel = build(kind, dtype=dtype)
    x = points(rng, 2, D, dtype=dtype)[jnp.array([0, 0, 1])]
    weights = points(rng, 3, 3, dtype=dtype)
    direction = points(rng, 3, D, dtype=dtype)  # Hessian times direction: not finite if any entry isn't

    def total(x):
        return jnp.sum(weights * kernel.gram(x))

    for derivative in jax.jit(lambda x, v: jax.jvp(jax.grad(total), (x,), (v,)))(x, direction):
        assert derivative.dtype == dtype
        assert bool(jnp.all(jnp.isfinite(derivative)))


def products(jaxpr: Jaxpr) -> Iterator:
    """All matrix products of a program, those inside its sub-programs included."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            yield equation
        for leaf in jax.tree.leaves(equation.params, is_leaf=lambda p: isinstance(p, ClosedJaxpr | Jaxpr)):
            if isinstance(leaf, ClosedJaxpr | Jaxpr):
                yield from products(leaf.jaxpr if isinstance(leaf, ClosedJaxpr) else leaf)


def precisions(function, *arguments) -> list[set]:
    program = jax.make_jaxpr(function)(*arguments).jaxpr
    return [set(np.atleast_1d(np.array(product.params["precision"], object))) for product in products(program)]


def test_the_search_for_matrix_products_sees_through_custom_derivatives_and_jit(rng):
    inside = jax.custom_jvp(lambda a: a @ a.T)
    inside.defjvp(lambda primals, tangents: (inside(*primals), tangents[0] @ primals[0].T))
    found = precisions(jax.jit(lambda a: jax.lax.cond(True, inside, inside, a)), points(rng, 2, 2))
    assert found == [{None}, {None}]


@each_kernel
def test_no_matrix_product_is_left_to_tf32(kind, rng):
    kernel = cast(KERNELS[kind](VARIANCES[0], np.ones(20)), jnp.float32)
    x, y = points(rng, N, 20, dtype=jnp.float32), points(rng, M, 20, dtype=jnp.float32)
    forward = precisions(kernel.gram, x) + precisions(kernel.cross, x, y)
    backward = precisions(jax.grad(lambda a, b: jnp.sum(kernel.gram(a)) + jnp.sum(kernel.cross(a, b)), (0, 1)), x, y)
    assert all(found == {jax.lax.Precision.HIGHEST} for found in forward + backward)
    by_products = {dk.RBF, dk.Matern12, dk.Matern32, dk.Matern52, dk.RationalQuadratic, dk.Periodic, dk.Linear}
    assert forward or kind not in by_products
