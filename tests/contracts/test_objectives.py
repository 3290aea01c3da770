"""Every objective and every method: finite terms with a gradient, a function of the key, fair on minibatches."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import dgpax
from contracts.completeness import final_subclasses
from dgpax.alignment import Warped, WarpedModel, default_warp
from dgpax.alignment._sequences import table_of
from dgpax.data import minibatch
from dgpax.inference import (
    AbstractMethod,
    Exact,
    LatentInputs,
    ModelAndPosterior,
    NoisyInputs,
    Sampling,
    Sparse,
    Variational,
)
from dgpax.kernels import RBF
from dgpax.objectives import ELBO, AbstractObjective, ImportanceWeighted, Predictive, SampledELBO
from dgpax.posteriors import MeanField
from dgpax.stride import Residual, Schedule, Stride

X = np.random.default_rng(0).uniform(-1, 1, (12, 2))
DATA = dgpax.dataset(X, np.sin(3 * X[:, :1]) + X[:, 1:])


def _deep():
    return dgpax.deep_gp(DATA, 2, 4)


METHODS = {
    Exact: lambda: (Exact(), dgpax.gp_regression(DATA), DATA),
    Sparse: lambda: (Sparse(), dgpax.sparse_gp_regression(DATA, 4), DATA),
    Variational: lambda: (Variational("stripes-and-arrow"), _deep(), DATA),
    Sampling: lambda: (Sampling(num_draws=2), _deep(), DATA),
    LatentInputs: lambda: (LatentInputs(), dgpax.deep_gp(DATA, 1, 4, num_latents=1), DATA),
    Warped: lambda: (
        Warped("fully-coupled", 4, 2),
        WarpedModel(default_warp(4, 10), RBF(0.5), np.array([0.1, 0.1]), 0.01),
        table_of([(X[:, 0], X[:, 1]), (X[:, 1], X[:, 0])]),
    ),
    Stride: lambda: (Stride(4, 2, schedule=Schedule(1, 4)), Residual(), DATA),
    NoisyInputs: lambda: (NoisyInputs(0.01), dgpax.deep_gp(DATA, 1, 4), DATA),
}
OBJECTIVES = {ELBO: ELBO, SampledELBO: SampledELBO, Predictive: Predictive, ImportanceWeighted: ImportanceWeighted}


def test_every_method_and_objective_has_a_row():
    methods = final_subclasses(AbstractMethod)
    assert set(METHODS) == methods
    assert set(OBJECTIVES) == final_subclasses(AbstractObjective) - methods


@eqx.filter_jit
def _total(objective, target, data, key):
    return objective.terms(target, data, key).total


@eqx.filter_jit
def _value_and_slope(objective, target, data, key):
    return eqx.filter_value_and_grad(lambda target: objective.terms(target, data, key).total)(target)


def _check(objective, target, data):
    (value, slope), (again, _) = (_value_and_slope(objective, target, data, jr.key(0)) for _ in range(2))
    assert jnp.isfinite(value) and value.shape == ()
    np.testing.assert_array_equal(value, again)
    leaves = jax.tree.leaves(slope)
    assert leaves and all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in leaves)


@pytest.mark.parametrize("kind", METHODS, ids=lambda kind: kind.__name__)
def test_method(kind):
    method, model, data = METHODS[kind]()
    scaled = method.check(model, data)
    target = method.target(model, scaled)
    prepared = method.prepare(target, scaled)
    _check(method, target, prepared)
    outcome = method.outcome(target, model, data, scaled)
    assert np.isfinite(outcome.largest_jitter) and outcome.clipped_variances >= 0
    assert method.default_engine().max_steps > 0 and method.largest_matrix(model, scaled) >= 0


@pytest.mark.parametrize("kind", OBJECTIVES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("num_layers", [1, 2])
def test_objective(kind, num_layers):
    model = dgpax.deep_gp(DATA, num_layers, 4)
    target = ModelAndPosterior(model, MeanField.at_prior(model.layers, inner_scale=0.3))
    scaled = model.to_model_units(DATA)
    _check(OBJECTIVES[kind](num_samples=3), target, scaled)
    if num_layers == 2:
        return
    whole = _total(OBJECTIVES[kind](num_samples=200), target, scaled, jr.key(3))
    halves = [minibatch(scaled, jr.key(4), jnp.asarray(i), 6) for i in range(2)]
    parts = [_total(OBJECTIVES[kind](num_samples=200), target, half, jr.key(3)) for half in halves]
    assert float(np.mean(parts)) == pytest.approx(float(whole), rel=0.05)
