"""Every engine: it climbs, keeps its shapes, is a function of (key, step), and retreats without moving."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import dgpax
from contracts.completeness import final_subclasses
from dgpax.inference import (
    LBFGS,
    SGHMC,
    AbstractEngine,
    Exact,
    Gradient,
    NaturalGradient,
    Problem,
    Sampling,
    Settling,
    Variational,
)

ENGINES = {
    LBFGS: lambda: LBFGS(max_steps=20),
    Gradient: lambda: Gradient(max_steps=20, steps_per_call=4),
    NaturalGradient: lambda: NaturalGradient(max_steps=20, steps_per_call=4, ramp_steps=1),
    Settling: lambda: Settling(engine=NaturalGradient(ramp_steps=1), max_steps=20, steps_per_call=4, settle_steps=5),
    SGHMC: lambda: SGHMC(num_warmup=20, num_draws=2, spacing=2, steps_per_call=4),
}
METHODS = {NaturalGradient: Variational, Settling: Variational, SGHMC: lambda: Sampling(num_draws=2)}


def test_every_engine_has_a_row():
    assert set(ENGINES) == final_subclasses(AbstractEngine)


def _problem(method):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(25, 1))
    data = dgpax.dataset(x, np.sin(3 * x[:, 0]) + 0.1 * rng.normal(size=25))
    model = dgpax.sparse_gp_regression(data, 6)
    scaled = model.to_model_units(data)
    return Problem(method, method.target(model, scaled), scaled)


@pytest.fixture(scope="module")
def problem():
    return _problem(Exact())


@eqx.filter_jit
def _step(engine, problem, state, key, step):
    return engine.step(problem, state, key, step)


@pytest.mark.parametrize("kind", ENGINES, ids=lambda kind: kind.__name__)
def test_engine(kind, key):
    engine = ENGINES[kind]()
    problem = _problem(METHODS.get(kind, Exact)())
    first = state = eqx.filter_jit(engine.init)(problem, key)
    before = engine.result(state)
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(problem.trainable()), strict=True):
        np.testing.assert_array_equal(a, b)
    values = []
    for step in range(engine.max_steps):
        state, info = _step(engine, problem, state, key, jnp.asarray(step))
        values.append(float(info.objective))
    assert values[-1] > values[0]
    assert jax.tree.structure(state) == jax.tree.structure(first)
    for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(first), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
    again, _ = _step(engine, problem, first, key, jnp.asarray(0))
    once_more, _ = _step(engine, problem, first, key, jnp.asarray(0))
    for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(once_more), strict=True):
        np.testing.assert_array_equal(a, b)
    retreated = engine.retreat(state)
    for a, b in zip(jax.tree.leaves(engine.result(retreated)), jax.tree.leaves(engine.result(state)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_minibatches_reach_the_objective_with_the_right_scale(problem, key):
    """Over one epoch of a linear objective, the mean of the scaled batch sums is the full sum."""
    from dgpax.data import minibatch

    data = problem.data
    batches = [minibatch(data, key, step, 5) for step in range(5)]
    mean = np.mean([float(batch.scale) * float(jnp.sum(batch.y**2)) for batch in batches])
    np.testing.assert_allclose(mean, float(jnp.sum(data.y**2)), rtol=1e-12)


@pytest.mark.slow
def test_more_restarts_are_never_worse(problem):
    def best(restarts):
        engine = LBFGS(max_steps=15, restarts=restarts)
        state = eqx.filter_jit(engine.init)(problem, jr.key(1))
        for step in range(15):
            state, _ = _step(engine, problem, state, jr.key(1), jnp.asarray(step))
        return -float(jnp.min(state.descents.value))

    assert best(3) >= best(1) - 1e-9
