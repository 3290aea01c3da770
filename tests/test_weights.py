"""Rows that count more or less than once."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dgpax
import dgpax.data as dd
from dgpax import objectives
from dgpax.data import minibatch, split
from dgpax.errors import InputError
from dgpax.inference import Gradient, Variational
from dgpax.objectives import elbo, log_joint
from dgpax.posteriors import Particles, posterior_at_prior

WEIGHTS = np.array([2.0, 1.0, 0.0, 3.0, 1.0, 1.0])
TWICE = np.repeat(np.arange(6), WEIGHTS.astype(int))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return dgpax.dataset(rng.normal(size=(6, 2)), rng.normal(size=6), weights=WEIGHTS)


def test_weights_are_carried(data):
    assert_array_equal(data.weights, WEIGHTS)
    assert_array_equal(data.take(jnp.array([3, 0])).weights, [3.0, 2.0])
    batch = minibatch(data, jr.key(0), 0, 2)
    assert_array_equal(batch.weights, WEIGHTS[np.asarray(batch.rows)])
    train, test = split(data, 0.5, jr.key(0))
    assert sorted(np.concatenate([np.asarray(part.weights) for part in (train, test)])) == sorted(WEIGHTS)
    assert data.counted().num_rows == 5
    assert dgpax.dataset([[1.0]], [1.0]).weights is None


def test_dropped_rows_take_their_weights_along():
    with pytest.warns(UserWarning, match="Dropped 1"):
        data = dgpax.dataset([[1.0], [np.nan], [3.0]], [1.0, 2.0, 3.0], weights=[1, 2, 3], missing="drop")
    assert_array_equal(data.weights, [1.0, 3.0])


@pytest.mark.parametrize("weights", [[1.0], [[1.0], [1.0]], [-1.0, 1.0], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_weights_that_make_no_sense(weights):
    with pytest.raises(InputError, match=r"[wW]eight"):
        dgpax.dataset([[1.0], [2.0]], [1.0, 2.0], weights=weights)


@eqx.filter_jit
def value_and_gradient(model, posterior, data, key, chunk_rows=None):
    def bound(parts):
        model, posterior = parts
        return elbo(model, posterior, data, key=key, chunk_rows=chunk_rows).total

    return eqx.filter_value_and_grad(bound)((model, posterior))


def as_repeated(data):
    return dataclasses.replace(data.take(jnp.asarray(TWICE)), weights=None)


@pytest.mark.slow
def test_weight_two_is_the_row_twice(data):
    model = dgpax.deep_gp(as_repeated(data), num_layers=1, num_inducing=4)
    posterior = posterior_at_prior("mean-field", model.layers)
    value, gradient = value_and_gradient(model, posterior, data, jr.key(0))
    again, same = value_and_gradient(model, posterior, as_repeated(data), jr.key(0))
    assert_allclose(value, again, rtol=1e-12)
    for left, right in zip(jax.tree.leaves(gradient), jax.tree.leaves(same), strict=True):
        assert_allclose(left, right, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_chunks_change_nothing(data):
    model = dgpax.deep_gp(as_repeated(data), num_layers=2, num_inducing=4)
    posterior = posterior_at_prior("mean-field", model.layers)
    whole, _ = value_and_gradient(model, posterior, data, jr.key(0))
    chunked, _ = value_and_gradient(model, posterior, data, jr.key(0), 4)
    assert_allclose(whole, chunked, rtol=1e-12)


@pytest.mark.slow
def test_the_joint_density_counts_rows_too(data):
    model = dgpax.deep_gp(as_repeated(data), num_layers=1, num_inducing=4)
    outputs = Particles((jnp.ones((1, 4)),))
    value = log_joint(model, outputs, data, key=jr.key(0)).total
    assert_allclose(value, log_joint(model, outputs, as_repeated(data), key=jr.key(0)).total, rtol=1e-12)


@pytest.mark.slow
def test_padding_changes_nothing_and_is_not_reported(data):
    model = dgpax.deep_gp(as_repeated(data), num_layers=1, num_inducing=4)
    padded = dataclasses.replace(
        data.take(jnp.array([*range(6), 0, 0, 1])), weights=jnp.array([*WEIGHTS, 0.0, 0.0, 0.0])
    )
    engine = Gradient(max_steps=25)
    fits = [dgpax.fit(model, rows, Variational(), engine=engine) for rows in (data, padded)]
    assert_allclose(fits[0].report.history, fits[1].report.history, rtol=1e-10)
    assert [fitted.report.num_rows for fitted in fits] == [5, 5]


def test_closed_forms_refuse_weights(data):
    with pytest.raises(InputError, match="Exact inference has no row weights"):
        dgpax.fit(dgpax.gp_regression(data), data)
    with pytest.raises(InputError, match="Sparse inference has no row weights"):
        objectives.collapsed_bound(dgpax.sparse_gp_regression(data, 3), data)


def test_scaling_and_starting_values_count_rows_too(data):
    weighted, repeated = dd.standardise(data), dd.standardise(as_repeated(data))
    for left, right in zip(jax.tree.leaves(weighted), jax.tree.leaves(repeated), strict=True):
        assert_allclose(left, right, rtol=1e-12)
    padded = dataclasses.replace(data, weights=jnp.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0]))
    few = dataclasses.replace(data.take(jnp.arange(4)), weights=None)
    models = [dgpax.deep_gp(rows, num_inducing=3) for rows in (padded, few)]
    for left, right in zip(*map(jax.tree.leaves, models), strict=True):
        assert_allclose(left, right, rtol=1e-12)
    assert bool(dd.standardise(dataclasses.replace(data, weights=jnp.eye(6)[0])).x_constant[0]) is False
