"""Every warp: draws increase in both precisions, the identity without randomness, the right size of randomness."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts.completeness import final_subclasses
from dgpax.errors import InputError
from dgpax.inducing import Points
from dgpax.kernels import RBF
from dgpax.parameters import cast, combine, partition
from dgpax.warps import AbstractWarp, IntegralWarp, MonotonicFlow

KNOTS, GRID = np.linspace(-1.0, 1.0, 20), np.linspace(-1.3, 1.3, 200)
WARPS = {
    MonotonicFlow: lambda knots=KNOTS: MonotonicFlow(RBF(0.6, 0.5), Points(KNOTS[::4, None]), knots, num_steps=5),
    IntegralWarp: lambda knots=KNOTS: IntegralWarp(RBF(0.5, 0.5), knots),
}


def test_every_warp_has_a_row():
    assert set(WARPS) == final_subclasses(AbstractWarp)


@eqx.filter_jit
def _values(warp, whitened, noise, x):
    return warp.draw(whitened, noise)(x)


@pytest.mark.parametrize("kind", WARPS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_warp(kind, dtype):
    warp, rng, x = cast(WARPS[kind](), dtype), np.random.default_rng(3), jnp.asarray(GRID, dtype)
    v, noise = (jnp.asarray(rng.normal(size=(2, 9, size)), dtype) for size in (warp.num_inducing, warp.num_noise))
    trainable, fixed = partition(warp)

    @jax.jit
    @jax.grad
    def slope(trainable):
        return jnp.sum(combine(trainable, fixed).draw(v, noise)(x) ** 2)

    drawn = _values(warp, v, noise, x)
    assert drawn.shape == (2, 9, 200) and drawn.dtype == dtype
    assert np.all(np.diff(drawn) > 0) and np.min(np.std(drawn, axis=(0, 1))) > 0.05
    np.testing.assert_allclose(_values(warp, v[1], noise[1], x)[2], drawn[1, 2], rtol=1e-5, atol=1e-6)
    still = _values(warp, jnp.zeros_like(v[1]), jnp.zeros_like(noise[1]), x)[0]
    np.testing.assert_allclose(still, GRID, atol=1e-5 if dtype == jnp.float32 else 1e-12)
    assert all(np.all(np.isfinite(leaf)) and np.any(leaf != 0) for leaf in jax.tree.leaves(slope(trainable)))


@pytest.mark.parametrize("kind", WARPS, ids=lambda kind: kind.__name__)
def test_knots_are_checked(kind):
    with pytest.raises(InputError, match="two or more knots"):
        WARPS[kind](np.zeros((3, 1)))
    with pytest.raises(InputError, match="increase strictly"):
        WARPS[kind](np.array([0.0, 0.0, 1.0]))
