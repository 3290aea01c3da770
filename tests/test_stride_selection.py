"""The bound, its changes in closed form, and the choice of inducing points."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference import stride as reference

from dgpax.kernels import RBF
from dgpax.parameters import cast
from dgpax.stride import (
    Stationary,
    addition_gains,
    collapsed_bound,
    exchange_rows,
    factorise,
    greedy_rows,
    removal_gains,
)
from dgpax.stride._selection import draw_candidates

N, M, D, P, S = 40, 7, 2, 2, 3
NOISE = 0.05


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(S, N, D))
    y = np.stack([np.sin(3 * features[0, :, 0]), np.cos(features[0, :, 1])], axis=1) + 0.1 * rng.normal(size=(N, P))
    rows = rng.permutation(N)[:M]
    covariances = [reference.rbf(f, f, 0.6, 1.7) for f in features]
    return features, y, rows, covariances


COVARIANCE = Stationary(RBF(0.6, 1.7))


@eqx.filter_jit
def gains(features, y, rows, candidates):
    factors = factorise(COVARIANCE, features, rows, y, jnp.asarray(NOISE))
    added = addition_gains(COVARIANCE, features, factors.A, candidates, y, jnp.asarray(NOISE))
    return removal_gains(factors, jnp.asarray(NOISE)), added


def test_bound(case):
    features, y, rows, (K, *_) = case
    ours = eqx.filter_jit(collapsed_bound)(COVARIANCE, jnp.asarray(features[0]), rows, y, jnp.asarray(NOISE))
    assert_allclose(ours, reference.bound(K, rows, y, NOISE), rtol=1e-10)


def test_gains_equal_direct_evaluation(case):
    features, y, rows, (K, *_) = case
    candidates = np.setdiff1d(np.arange(N), rows)
    removed, added = gains(jnp.asarray(features[0]), y, rows, candidates)
    now = reference.bound(K, rows, y, NOISE)
    assert_allclose(removed, [reference.bound(K, np.delete(rows, i), y, NOISE) - now for i in range(M)], rtol=1e-8)
    assert_allclose(added, [reference.bound(K, np.append(rows, j), y, NOISE) - now for j in candidates], rtol=1e-8)


def test_removal_undoes_addition(case):
    features, y, rows, _ = case
    f = jnp.asarray(features[1])
    removed, _ = gains(f, y, rows, rows[:1])
    _, added = gains(f, y, rows[1:], rows[:1])
    assert_allclose(added[0], -removed[0], rtol=1e-9)


def test_a_determined_candidate_gains_nothing(case):
    features, y, rows, _ = case
    _, added = gains(jnp.asarray(features[0]), y, rows, rows[:2])
    assert_allclose(added, 0.0)


def choose_directly(total, start, allowed):
    """The best of the allowed rows to add."""
    return max(allowed, key=lambda j: total([*start, j]))


def test_greedy_choice_is_the_greedy_choice(case):
    features, y, _, covariances = case
    chosen = greedy_rows(
        COVARIANCE, jnp.asarray(features), y, jnp.asarray(NOISE), jnp.ones(N, bool),
        num_inducing=4, num_candidates=N, key=jr.key(0),
    )  # fmt: skip
    expected: list[int] = []
    for _ in range(4):
        left = [j for j in range(N) if j not in expected]
        expected.append(choose_directly(lambda rows: total(covariances, rows, y), expected, left))
    assert list(np.asarray(chosen)) == expected


def total(covariances, rows, y):
    return sum(reference.bound(K, np.asarray(rows), y, NOISE) for K in covariances)


@pytest.mark.parametrize("at_once", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_exchange_is_algorithm_2(case, at_once):
    features, y, rows, covariances = case
    ours = exchange_rows(
        COVARIANCE, jnp.asarray(features), y, jnp.asarray(NOISE), jnp.ones(N, bool), jnp.asarray(rows),
        num_exchanges=3, num_candidates=N, particles_at_once=at_once, key=jr.key(0),
    )  # fmt: skip
    expected = list(rows)
    for _ in range(3):
        kept = max((expected[:i] + expected[i + 1 :] for i in range(M)), key=lambda r: total(covariances, r, y))
        left = [j for j in range(N) if j not in kept]
        expected = [*kept, choose_directly(lambda r: total(covariances, r, y), kept, left)]
    assert list(np.asarray(ours)) == expected


def test_exchange_never_lowers_the_bound_and_never_repeats_a_row(case):
    features, y, rows, covariances = case
    for seed in range(5):
        new = exchange_rows(
            COVARIANCE, jnp.asarray(features), y, jnp.asarray(NOISE), jnp.ones(N, bool), jnp.asarray(rows),
            num_exchanges=2, num_candidates=3, particles_at_once=3, key=jr.key(seed),
        )  # fmt: skip
        assert total(covariances, np.asarray(new), y) >= total(covariances, rows, y) - 1e-9
        assert len(set(np.asarray(new).tolist())) == M
        rows = np.asarray(new)


def test_rows_that_are_not_selectable_are_never_chosen(case):
    features, y, _, _ = case
    selectable = jnp.arange(N) % 2 == 0
    chosen = greedy_rows(
        COVARIANCE, jnp.asarray(features), y, jnp.asarray(NOISE), selectable,
        num_inducing=5, num_candidates=8, key=jr.key(1),
    )  # fmt: skip
    assert np.all(np.asarray(chosen) % 2 == 0)
    assert len(set(np.asarray(chosen).tolist())) == 5


def test_candidates_are_distinct_and_uniform():
    left = jnp.arange(10) >= 4
    drawn = np.asarray(jax.vmap(lambda key: draw_candidates(left, 3, key))(jr.split(jr.key(0), 2000)))
    assert all(len(set(row)) == 3 for row in drawn.tolist())
    counts = np.bincount(drawn.ravel(), minlength=10)
    assert np.all(counts[:4] == 0)
    assert np.all(np.abs(counts[4:] - 1000) < 4 * np.sqrt(2000 * 0.5 * 0.5))


def test_float32(case):
    features, y, rows, (K, *_) = case
    single = cast(COVARIANCE, jnp.float32)
    f, targets, noise = (jnp.asarray(a, jnp.float32) for a in (features[0], y, NOISE))
    chosen = jnp.asarray(rows)

    @eqx.filter_jit
    def both(f, targets):
        factors = factorise(single, f, chosen, targets, noise)
        return removal_gains(factors, noise), addition_gains(single, f, factors.A, chosen[:1], targets, noise)

    removed, added = both(f, targets)
    assert removed.dtype == added.dtype == jnp.float32
    now = reference.bound(K, rows, y, NOISE)
    assert_allclose(removed[0], reference.bound(K, rows[1:], y, NOISE) - now, rtol=1e-3)
