"""Batches of factorisations and solves: right, differentiable, and never a batch of LAPACK calls on a CPU."""

from __future__ import annotations

import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.test_util import check_grads
from programs import largest_batch

import dgpax
from dgpax.inference import Gradient, NaturalGradient, Variational
from dgpax.inference._base import Problem
from dgpax.linalg import matmul, safe_cholesky, solve_lower, solve_lower_transposed

BATCHES = [(), (1,), (2, 3)]
SIZES = [1, 8, 9]
"""At most, and above, the size up to which batches are worked out entry by entry."""


def _positive(rng, batch, size):
    A = rng.normal(size=(*batch, size, size))
    return A @ np.swapaxes(A, -1, -2) + np.eye(size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("batch", BATCHES)
def test_factors_and_solves_agree_with_numpy(rng, batch, size):
    K, B = _positive(rng, batch, size), rng.normal(size=(*batch, size, 2))
    L = np.linalg.cholesky(K)
    np.testing.assert_allclose(safe_cholesky(jnp.asarray(K), jitter=0.0).factor, L, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(solve_lower(jnp.asarray(L), jnp.asarray(B)), np.linalg.solve(L, B), rtol=1e-9)
    transposed = np.linalg.solve(np.swapaxes(L, -1, -2), B)
    np.testing.assert_allclose(solve_lower_transposed(jnp.asarray(L), jnp.asarray(B)), transposed, rtol=1e-9)


@pytest.mark.parametrize("size", [3, 12])
def test_vmap_adds_axes_to_the_batch(rng, size):
    K, B = jnp.asarray(_positive(rng, (2, 3), size)), jnp.asarray(rng.normal(size=(3, size, 2)))

    def solve(K, B):
        return solve_lower(safe_cholesky(K, jitter=0.0).factor, B)

    expected = jax.jit(solve)(K, jnp.broadcast_to(B, (2, 3, size, 2)))
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.vmap(solve), (0, None)))(K, B), expected, rtol=1e-12)
    slope = jax.grad(lambda K: jnp.sum(jnp.sin(solve(K, B))))
    alone = [jax.jit(slope)(member) for member in K]
    np.testing.assert_allclose(jax.jit(jax.vmap(slope))(K), jnp.stack(alone), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 9])
@pytest.mark.parametrize("solve", [solve_lower, solve_lower_transposed])
def test_derivatives_of_solves_to_second_order(rng, size, solve):
    L = jnp.asarray(np.linalg.cholesky(_positive(rng, (2,), size)))
    B = jnp.asarray(rng.normal(size=(2, size, 2)))
    check_grads(lambda L, B: solve(jnp.asarray(L), jnp.asarray(B)), (L, B), order=2)


@pytest.mark.parametrize("size", [2, 9])
def test_a_matrix_that_has_no_factor_spoils_no_other(size):
    singular = jnp.zeros((size, size)).at[0, 0].set(1.0)
    K = jnp.stack([jnp.eye(size), singular, -jnp.eye(size)])
    result = safe_cholesky(K, jitter=0.0)
    np.testing.assert_array_equal(result.factor[0], jnp.eye(size))
    np.testing.assert_array_equal(result.success, [True, True, False])
    assert float(result.jitter[1]) > 0.0
    np.testing.assert_allclose(matmul(result.factor[1], result.factor[1].mT), singular, atol=1e-6)


FAMILIES = ("mean-field", "stripes-and-arrow", "fully-coupled", "layer-wise", "chain", "points-as-locations")
ENGINES = {"natural": NaturalGradient(), "adam": Gradient()}
CASES = [(family, engine) for family in FAMILIES for engine in ENGINES if family in FAMILIES[:4] or engine == "adam"]
QUICK = (("mean-field", "natural"), ("stripes-and-arrow", "adam"))


@pytest.mark.parametrize(
    ("family", "engine"), [pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow) for case in CASES]
)
def test_no_program_of_a_fit_has_a_batch_of_lapack_calls(family, engine):
    """As many of them at the same time as there are threads would wait for each other forever, without an error."""
    x = np.linspace(-1.0, 1.0, 30).reshape(-1, 2)
    data = dgpax.dataset(x, np.sin(3.0 * x[:, :1]))
    method = Variational(family)
    model = dgpax.deep_gp(data, 3, 10)
    problem = Problem(method, method.target(model, data), model.to_model_units(data))
    taken = ENGINES[engine]

    def step(problem):
        state = taken.init(problem, jr.key(0))
        return eqx.filter(taken.step(problem, state, jr.key(0), jnp.asarray(3)), eqx.is_array)

    arrays, static = eqx.partition(problem, eqx.is_array)
    assert largest_batch(lambda arrays: step(eqx.combine(arrays, static)), arrays) == 2
    twice = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), arrays)
    assert largest_batch(jax.vmap(lambda arrays: step(eqx.combine(arrays, static))), twice) == 2


SOLVES = """
import jax, jax.numpy as jnp, dgpax
from dgpax.linalg import solve_lower
eye = jnp.eye(50)

@jax.jit
def steps(factors):
    def step(factors, _):
        inverses = [solve_lower(L, jnp.broadcast_to(eye, L.shape)) for L in factors]
        return [jnp.tril(0.5 * (W + eye)) for W in inverses], None
    return jax.lax.scan(step, factors, None, length=300)[0]

print(float(steps([jnp.tile(eye + 0.1 * jnp.tri(50, k=-1), (8, 1, 1)) * k for k in (1.0, 2.0, 3.0)])[0][0, 0, 0]))
"""


@pytest.mark.slow
def test_solves_that_do_not_need_each_other_come_to_an_end():
    """On two cores `lax.linalg.triangular_solve` in their place hangs at once."""
    ended = subprocess.run([sys.executable, "-c", SOLVES], capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    assert float(ended.stdout) == pytest.approx(1.0)
