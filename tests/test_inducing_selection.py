"""Inducing locations chosen from data, against brute force in NumPy."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.regression import collapsed_bound, nystrom

import dgpax.kernels as dk
from dgpax.errors import DgpaxWarning, InputError
from dgpax.inducing import Points, distinct_rows, greedy_bound, greedy_variance, k_means
from dgpax.inducing._greedy import addition_gains

gains_of = jax.jit(addition_gains)
KERNEL = dk.Matern32([0.7, 1.2], 1.3)
NOISE = 0.05


def with_duplicates(rng):
    """Six distinct rows, and a table with every one of them twice or three times."""
    rows = rng.normal(size=(6, 2))
    return rows, jnp.asarray(np.concatenate([rows, rows[::-1], rows[:3]]))


def indices_of(locations, rows) -> list[int]:
    """Which row each location is."""
    matches = np.all(np.asarray(locations)[:, None] == np.asarray(rows)[None], axis=-1)
    assert np.all(matches.any(axis=1))
    return [int(row) for row in matches.argmax(axis=1)]


def bound(K, chosen: list[int], y) -> float:
    if not chosen:
        return collapsed_bound(np.eye(1), np.zeros((1, len(K))), np.diag(K), y, NOISE)
    return collapsed_bound(K[np.ix_(chosen, chosen)], K[chosen], np.diag(K), y, NOISE)


def brute_force(score, num_rows: int, num_inducing: int) -> list[int]:
    """Add the row with the best score(chosen + [row]), one by one."""
    chosen: list[int] = []
    for _ in range(num_inducing):
        left = [row for row in range(num_rows) if row not in chosen]
        chosen.append(max(left, key=lambda row: score([*chosen, row])))
    return chosen


def test_greedy_variance_takes_the_row_with_the_largest_conditional_variance(rng):
    x = jnp.asarray(rng.normal(size=(12, 2)))
    K = np.asarray((KERNEL + dk.Linear(0.5)).gram(x))

    def conditional_variance(chosen):
        *given, row = chosen
        return K[row, row] - (nystrom(K[np.ix_(given, given)], K[given])[row, row] if given else 0.0)

    found = greedy_variance(KERNEL + dk.Linear(0.5), x, 7)
    assert indices_of(found, x) == brute_force(conditional_variance, 12, 7)


@pytest.mark.parametrize("num_outputs", [1, 3])
@pytest.mark.parametrize("chosen", [[], [3], [3, 0, 7]])
def test_gains_are_differences_of_the_collapsed_bound(chosen, num_outputs, rng):
    x = jnp.asarray(rng.normal(size=(15, 2)))
    y = rng.normal(size=(15, num_outputs))
    K = np.asarray(KERNEL.gram(x))
    factor = np.linalg.cholesky(K[np.ix_(chosen, chosen)]) if chosen else np.zeros((0, 0))
    A = np.zeros((4, 15))  # with capacity to spare
    A[: len(chosen)] = np.linalg.solve(factor, K[chosen])
    residual = np.diag(K) - np.sum(A**2, axis=0)
    gains = np.asarray(gains_of(*map(jnp.asarray, (A, K, residual, np.arange(15), y, NOISE))))
    left = [row for row in range(15) if row not in chosen]
    expected = [bound(K, [*chosen, row], y) - bound(K, chosen, y) for row in left]
    np.testing.assert_allclose(gains[left], expected, rtol=1e-8)
    assert np.all(gains[chosen] == -np.inf)


def test_greedy_bound_takes_the_row_that_raises_the_bound_most(rng):
    x = jnp.asarray(rng.normal(size=(12, 2)))
    y = np.stack([np.sin(2.0 * x[:, 0]), np.cos(x[:, 1])], axis=1) + 0.1 * rng.normal(size=(12, 1))
    K = np.asarray(KERNEL.gram(x))
    found = greedy_bound(KERNEL, x, jnp.asarray(y), NOISE, 6)
    assert indices_of(found, x) == brute_force(lambda chosen: bound(K, chosen, y), 12, 6)


def test_greedy_bound_scores_a_random_subset_of_candidates(rng):
    x, y = jnp.asarray(rng.normal(size=(30, 2))), jnp.asarray(rng.normal(size=(30, 1)))
    sets = [greedy_bound(KERNEL, x, y, NOISE, 4, num_candidates=4, seed=seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(sets[0], sets[1])
    assert set(indices_of(sets[0], x)) != set(indices_of(sets[2], x))
    assert len(set(indices_of(sets[0], x))) == 4


@pytest.mark.parametrize("kernel", [KERNEL, dk.Linear().warp(jnp.tanh)])
def test_no_row_is_chosen_twice(kernel, rng):
    """Not with duplicates in the data, nor with a kernel whose rank is smaller than M."""
    rows, x = with_duplicates(rng)
    y = jnp.asarray(rng.normal(size=(len(x), 1)))
    for found in (greedy_variance(kernel, x, 6), greedy_bound(kernel, x, y, NOISE, 6)):
        assert len(set(indices_of(found, rows))) == 6


def test_float32_stays_float32(rng):
    x, y = jnp.asarray(rng.normal(size=(10, 2)), jnp.float32), jnp.asarray(rng.normal(size=(10, 1)), jnp.float32)
    kernel = dk.RBF(jnp.ones(2, jnp.float32), jnp.float32(1.0))
    for found in (k_means(x, 3), greedy_variance(kernel, x, 3), greedy_bound(kernel, x, y, NOISE, 3)):
        assert found.dtype == jnp.float32


def test_k_means_gives_distinct_centres_that_depend_only_on_the_seed(rng):
    clusters = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    x = jnp.asarray(np.repeat(clusters, 20, axis=0) + 0.1 * rng.normal(size=(60, 2)))
    centres = np.asarray(k_means(x, 3, seed=3))
    np.testing.assert_array_equal(k_means(x, 3, seed=3), centres)
    for centre in clusters:
        assert np.min(np.linalg.norm(centres - centre, axis=1)) < 0.2
    many = [np.asarray(k_means(x, 20, seed=seed)) for seed in (0, 1)]
    assert all(len(np.unique(np.round(part, 9), axis=0)) == 20 for part in many)
    assert not np.array_equal(many[0], many[1])


def test_distinct_rows_are_the_first_of_each_group():
    x = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0], [1.0, 1e-14], [2.0, 1.0], [2.0, 0.0]])
    np.testing.assert_array_equal(distinct_rows(jnp.asarray(x)), [0, 1, 4])


@pytest.mark.parametrize("method", ["k_means", "greedy_variance", "greedy_bound"])
def test_more_points_than_distinct_rows_are_reduced_with_a_warning(method, rng):
    rows, x = with_duplicates(rng)
    y = jnp.ones((len(x), 1))
    choose = {
        "k_means": lambda m: k_means(x, m),
        "greedy_variance": lambda m: greedy_variance(KERNEL, x, m),
        "greedy_bound": lambda m: greedy_bound(KERNEL, x, y, NOISE, m),
    }[method]
    with pytest.warns(DgpaxWarning, match="9 inducing points were asked for, but the data has 6 distinct rows"):
        found = choose(9)
    assert sorted(indices_of(found, rows)) == [0, 1, 2, 3, 4, 5]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(set(indices_of(choose(6), rows))) == 6
    with pytest.raises(InputError, match="at least 1; got 0"):
        choose(0)


def test_points_know_their_number_and_shape():
    assert Points(np.zeros((4, 2))).num_inducing == 4
    assert Points(np.zeros((3, 4, 2))).num_inducing == 4
    for shape in ((4,), (0, 2), (2, 3, 4, 5)):
        with pytest.raises(InputError, match="needs shape"):
            Points(np.zeros(shape))
