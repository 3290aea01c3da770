"""Mean functions, and the linear map that inner layers start from."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dgpax.errors import InputError
from dgpax.means import Constant, Identity, Linear, Zero, linear_map
from dgpax.parameters import find, partition


@pytest.fixture
def x(rng):
    return jnp.asarray(rng.normal(size=(2, 5, 3)) + 1.0)


def test_zero_constant_identity_and_linear(x, rng):
    W, b = rng.normal(size=(3, 2)), rng.normal(size=2)
    np.testing.assert_array_equal(Zero()(x), np.zeros((2, 5, 1)))
    np.testing.assert_array_equal(Constant(0.7)(x), np.full((2, 5, 1), 0.7))
    np.testing.assert_array_equal(Constant([0.7, -1.0])(x), np.broadcast_to([0.7, -1.0], (2, 5, 2)))
    np.testing.assert_array_equal(Identity()(x), x)
    np.testing.assert_allclose(Linear(W, b)(x), np.asarray(x) @ W + b, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(Linear(W)(x[0]), np.asarray(x[0]) @ W, rtol=1e-12, atol=1e-13)


def test_trained_by_default():
    assert all(node.trainable for node in find(Linear(np.ones((3, 2)))).values())
    assert find(Constant())["value"].trainable


def test_products_are_at_full_precision(x):
    program = jax.make_jaxpr(Linear(np.ones((3, 2))))(x)
    (product,) = [equation for equation in program.eqns if equation.primitive.name == "dot_general"]
    assert set(product.params["precision"]) == {jax.lax.Precision.HIGHEST}


def test_linear_maps_keep_shrink_or_widen(x):
    rows = x[0]
    assert isinstance(linear_map(rows, 3), Identity)
    np.testing.assert_array_equal(linear_map(rows, 5)(rows), np.pad(np.asarray(rows), ((0, 0), (0, 2))))
    for num_outputs in (1, 2):
        mean = linear_map(rows, num_outputs)
        _, _, directions = np.linalg.svd(np.asarray(rows))  # not centred
        weights = np.asarray(find(mean)["weights"])
        signs = np.sign(np.sum(weights * directions[:num_outputs].T, axis=0))
        np.testing.assert_allclose(weights * signs, directions[:num_outputs].T, atol=1e-12)
        np.testing.assert_allclose(mean(rows), np.asarray(rows) @ weights, rtol=1e-12, atol=1e-12)


def test_linear_maps_minimise_the_uncentred_reconstruction_error(x):
    rows = np.asarray(x[0])
    weights = np.asarray(find(linear_map(x[0], 2))["weights"])
    values = np.linalg.eigvalsh(rows.T @ rows)
    np.testing.assert_allclose(np.sum((rows - rows @ weights @ weights.T) ** 2), values[0], rtol=1e-10)


@pytest.mark.parametrize("num_outputs", [2, 3, 5])
def test_linear_maps_are_fixed_and_keep_float32(x, num_outputs):
    rows = x[0].astype(jnp.float32)
    mean = linear_map(rows, num_outputs)
    assert jax.tree.leaves(partition(mean)[0]) == []
    assert mean(rows).dtype == jnp.float32 and mean(rows).shape == (5, num_outputs)


def test_errors_say_what_was_wrong(x):
    with pytest.raises(InputError, match=r"shape \(D, P\); got \(3,\)"):
        Linear(np.ones(3))
    with pytest.raises(InputError, match="maps 2 columns, but got 3"):
        Linear(np.ones((2, 2)))(x)
    with pytest.raises(InputError, match="at least one output"):
        linear_map(x[0], 0)
    with pytest.raises(InputError, match="1 rows span too few"):
        linear_map(x[0, :1], 2)
