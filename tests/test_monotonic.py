"""Increasing functions: flows of a vector field, and integrals of a positive rate."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference import flow as reference

from dgpax.errors import InputError
from dgpax.inducing import Points
from dgpax.kernels import RBF
from dgpax.parameters import cast, fixed
from dgpax.warps import IntegralWarp, MonotonicFlow, monotone_integral

Z = np.linspace(-1.2, 1.2, 6)
SPACE_TIME = np.stack(np.meshgrid(np.linspace(-1, 1, 4), np.linspace(0, 1, 3)), axis=-1).reshape(-1, 2)
KNOTS = np.linspace(-1.0, 1.0, 50)
GRID = np.linspace(-1.3, 1.3, 1000)
WARPS = {
    "flow": MonotonicFlow(RBF(0.6, 0.5), Points(Z[:, None]), KNOTS, num_steps=10),
    "flow in time": MonotonicFlow(RBF([0.7, 0.8], 0.5), Points(SPACE_TIME), KNOTS, num_steps=10),
    "integral": IntegralWarp(RBF(0.5, 0.5), KNOTS),
}
STRONG = MonotonicFlow(RBF([0.3, 0.3], 9.0), Points(SPACE_TIME), KNOTS, num_steps=5)


@eqx.filter_jit
def values(warp, whitened, noise, x):
    return warp.draw(whitened, noise)(x)


def draws(warp, num_draws: int, dtype):
    rng, warp = np.random.default_rng(3), cast(warp, dtype)
    whitened = jnp.asarray(rng.normal(size=(num_draws, warp.num_inducing)), dtype)
    noise = jnp.asarray(rng.normal(size=(num_draws, warp.num_noise)), dtype)
    return np.asarray(values(warp, whitened, noise, jnp.asarray(GRID, dtype)))


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
@pytest.mark.parametrize("warp", WARPS.values(), ids=list(WARPS))
def test_every_draw_is_increasing(warp, dtype):
    drawn = draws(warp, 1000, dtype)
    assert drawn.dtype == dtype
    assert np.all(np.diff(drawn) > 0)
    assert drawn.std(axis=0).min() > 0.05


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_no_draw_decreases_where_plain_steps_fold(dtype):
    drawn = draws(STRONG, 1000, dtype)
    assert np.all(np.isfinite(drawn))
    assert np.all(np.diff(drawn) >= 0)
    rng = np.random.default_rng(3)
    weights = 3.0 * rng.normal(size=len(Z))
    folded = reference.noisy_euler(GRID, Z, weights, 0.3, 9.0, np.sqrt(0.2) * rng.normal(size=5))
    assert np.any(np.diff(folded) < 0)


def test_without_a_vector_field_it_is_the_identity():
    """No inducing outputs and no noise, or no variance."""
    for warp in WARPS.values():
        nothing = jnp.zeros((1000, warp.num_inducing)), jnp.zeros((1000, warp.num_noise))
        assert_allclose(values(warp, *nothing, jnp.asarray(GRID))[0], GRID, atol=1e-12)
    still = eqx.tree_at(lambda warp: warp.kernel.variance, WARPS["flow"], fixed(1e-30))
    assert_allclose(draws(still, 1000, jnp.float64)[:3], [GRID] * 3, atol=1e-12)


@pytest.mark.parametrize(("reach", "num_points"), [(1.2, 14), (1.8, 2)])
def test_a_flow_takes_euler_maruyama_steps(reach, num_points):
    """Against plain steps of every x by itself, where none of them folds.

    With 14 inducing points nothing is left to the noise; with 2, outside of where the paths are, nearly all is.
    """
    z = np.linspace(-reach, reach, num_points)
    u, x, steps = 0.3 * np.sin(2 * z) + 0.2, np.linspace(-1, 1, 30), 16
    noise = np.random.default_rng(1).normal(size=(4, steps))
    expected = [reference.noisy_euler(x, z, u, 0.5, 0.3, row / np.sqrt(steps)) for row in noise]
    assert np.diff(expected).min() > 0
    whitened = np.linalg.solve(np.linalg.cholesky(reference.rbf(z, z, 0.5, 0.3)), u)
    warp = MonotonicFlow(RBF(0.5, 0.3), Points(z[:, None]), np.linspace(-1, 1, 201), num_steps=steps)
    found = values(warp, jnp.tile(jnp.asarray(whitened), (4, 1)), jnp.asarray(noise), x)
    assert_allclose(found, expected, atol=1e-4)


@pytest.mark.slow
def test_derivatives_by_everything_are_finite():
    warp = WARPS["flow"]

    @eqx.filter_jit
    @eqx.filter_grad
    def slope(parts):
        warp, whitened = parts
        return jnp.sum(warp.draw(whitened, jnp.ones((2, warp.num_noise)))(GRID) ** 2)

    found = slope((warp, jnp.ones((2, warp.num_inducing))))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(found))
    assert np.any(np.asarray(found[0].kernel.lengthscale.raw) != 0)


def test_integrals_never_decrease_in_single_precision():
    rng = np.random.default_rng(0)
    knots = jnp.asarray(np.sort(rng.uniform(100, 101, size=40)), jnp.float32)
    rates = jnp.asarray(np.exp(8 * rng.normal(size=(200, 40))), jnp.float32)
    x = jnp.asarray(np.linspace(99.9, 101.1, 4000), jnp.float32)
    found = np.asarray(jax.jit(jax.vmap(lambda rate: monotone_integral(knots, rate, x)))(rates))
    assert np.all(np.diff(found) >= 0)
    assert np.all(found[:, -1] > found[:, 0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MonotonicFlow(RBF(), Points(np.zeros((4, 3))), KNOTS), "one input"),
        (lambda: MonotonicFlow(RBF(), Points(Z[:, None]), np.zeros((4, 2))), "one input"),
        (lambda: MonotonicFlow(RBF(), Points(Z[:, None]), KNOTS[::-1]), "increase strictly"),
        (lambda: MonotonicFlow(RBF(), Points(Z[:, None]), KNOTS, num_steps=0), "num_steps"),
        (lambda: IntegralWarp(RBF(), np.zeros((4, 2))), "one input"),
        (lambda: WARPS["integral"].draw(jnp.zeros((3, 51)), jnp.zeros((3, 0)))(np.zeros((5, 2))), "one input"),
    ],
)
def test_what_a_warp_refuses(make, message):
    with pytest.raises(InputError, match=message):
        make()
