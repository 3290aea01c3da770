"""Every engine: it climbs, keeps its shapes, is a function of (key, step), and retreats without moving."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from test_stride_predictions import untrained

import dgpax
from contracts.completeness import final_subclasses
from dgpax.inference import (
    LBFGS,
    NUTS,
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
from dgpax.stride import Residual, Schedule, Standard, Stride
from dgpax.stride._engine import MonteCarloEM

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(25, 1))
DATA = dgpax.dataset(X, np.sin(3 * X[:, 0]) + 0.1 * RNG.normal(size=25))
SHORT = Schedule(num_iterations=2, num_steps=20, num_exchanges=0)

ENGINES = {
    LBFGS: lambda: LBFGS(max_steps=20),
    Gradient: lambda: Gradient(max_steps=20, steps_per_call=4),
    NaturalGradient: lambda: NaturalGradient(max_steps=20, steps_per_call=4, ramp_steps=1),
    Settling: lambda: Settling(engine=NaturalGradient(ramp_steps=1), max_steps=20, steps_per_call=4, settle_steps=5),
    SGHMC: lambda: SGHMC(num_warmup=20, num_draws=2, spacing=2, steps_per_call=4),
    NUTS: lambda: NUTS(num_draws=4, num_chains=2, num_warmup=30, steps_per_call=10),
    MonteCarloEM: lambda: MonteCarloEM(schedule=SHORT),  # pyright: ignore[reportCallIssue] - its max_steps is a property
}
METHODS = {NaturalGradient: Variational, Settling: Variational, SGHMC: lambda: Sampling(num_draws=2)}
METHODS |= {NUTS: lambda: Exact(hyperparameters="sampled", num_draws=4)}
METHODS |= {MonteCarloEM: lambda: Stride(6, 3, Standard(), initial=untrained(DATA, 6))}
MODELS = {MonteCarloEM: Residual}


def test_every_engine_has_a_row():
    assert set(ENGINES) == final_subclasses(AbstractEngine)


def _problem(kind):
    """As `fit` makes it, of what the engine's method takes for a model."""
    method = METHODS.get(kind, Exact)()
    model = MODELS.get(kind, lambda: dgpax.sparse_gp_regression(DATA, 6))()
    scaled = method.check(model, DATA)
    target = method.target(model, scaled)
    return Problem(method, target, method.prepare(target, scaled))


@pytest.fixture(scope="module")
def problem():
    return _problem(LBFGS)


def _all_steps(engine, problem, state, key):
    """As the loop takes them: the last state, and the objective at every step that was accepted."""
    values = []
    step = 0
    while step < engine.max_steps:
        state, infos, accepted = engine.advance(problem, state, key, step, engine.max_steps)
        values += np.asarray(infos.objective)[accepted].tolist()
        step += len(accepted)
    assert step == engine.max_steps
    return state, values


@pytest.mark.parametrize("kind", ENGINES, ids=lambda kind: kind.__name__)
def test_engine(kind, key):
    engine = ENGINES[kind]()
    problem = _problem(kind)
    first = engine.begin(problem, key)
    before = engine.result(first)
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(problem.trainable()), strict=True):
        np.testing.assert_array_equal(a, b)
    state, values = _all_steps(engine, problem, first, key)
    assert values[-1] > values[0]
    assert jax.tree.structure(engine.target(problem, state)) == jax.tree.structure(engine.target(problem, first))
    assert jax.tree.structure(state) == jax.tree.structure(first)
    for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(first), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
    again, once_more = (engine.advance(problem, first, key, 0, engine.max_steps)[0] for _ in range(2))
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
        state: Any = _all_steps(engine, problem, engine.begin(problem, jr.key(1)), jr.key(1))[0]
        return -float(jnp.min(state.descents.value))

    assert best(3) >= best(1) - 1e-9
