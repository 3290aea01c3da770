"""Architectures, and hidden layers made of whitened variables."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference import stride as reference

from dgpax.errors import InputError
from dgpax.kernels import RBF, Matern32
from dgpax.parameters import cast
from dgpax.stride import (
    Composition,
    Convolution,
    CrossApproximation,
    FullySparse,
    Injective,
    LocallyScaled,
    SquaredClip,
    Standard,
    Stationary,
    monotone_integral,
)
from dgpax.stride._covariance import squared_distances
from dgpax.stride._hidden import Prior, Selected
from dgpax.stride._spread import by_row
from dgpax.stride._top import ExactTop, SparseTop
from dgpax.typing import ArrayLike

N = 30


def prior_of(architecture, x, lengthscale: ArrayLike = 0.8, variance: ArrayLike = 1.5):
    start = architecture.start(x, RBF(lengthscale, variance))
    middle = (architecture.covariance(start.middle),) * (architecture.num_hidden - 1)
    prior = Prior(architecture, Stationary(start.bottom), (*middle, architecture.covariance(start.top)), x)
    return prior, (start.values,) * architecture.num_hidden


@pytest.mark.parametrize("columns", [1, 8, 20])
def test_squared_distances(columns):
    x, y = np.random.default_rng(0).normal(size=(2, 12, columns))
    expected = np.sum((x[:, None] - y[None]) ** 2, axis=-1)
    assert_allclose(squared_distances(jnp.asarray(x), jnp.asarray(y)), expected, rtol=1e-12, atol=1e-12)


def test_covariances_against_their_formulas(rng):
    x, local = rng.normal(size=(9, 3)), rng.uniform(0.3, 2.0, size=9)
    points = jnp.asarray(x)
    assert_allclose(Stationary(RBF(0.7, 2.0))(points, points), reference.rbf(x, x, 0.7, 2.0), rtol=1e-12)
    features = jnp.column_stack([0.7 * points, local])
    assert_allclose(LocallyScaled(RBF(0.7, 2.0))(features, features), reference.paciorek_rbf(x, local, 2.0), rtol=1e-12)


def test_convolution_is_positive_semi_definite():
    """In 1,000 random trials of 12 points in 2 dimensions, with rough local lengths, for two kernels."""

    @jax.jit
    def matrices(keys):
        def trial(key):
            key_x, key_u = jr.split(key)
            local = SquaredClip(0.05, 5.0)(1.0 + 2.0 * jr.normal(key_u, (12, 1)))
            features = jnp.concatenate([jr.normal(key_x, (12, 2)), local], axis=1)
            return [LocallyScaled(kernel)(features, features) for kernel in (RBF(1.0, 1.0), Matern32(1.0, 1.0))]

        return jax.vmap(trial)(keys)

    for K in matrices(jr.split(jr.key(0), 1000)):
        assert np.min(np.linalg.eigvalsh(np.asarray(K))) > -1e-12


def test_the_printed_convolution_is_not(rng):
    worst = 0.0
    for _ in range(50):
        x, local = rng.normal(size=(12, 1)), np.clip(1 + 2 * rng.normal(size=12), 0.05, 5.0)
        worst = min(worst, np.linalg.eigvalsh(reference.paciorek_rbf(x, local, 1.0, printed=True))[0])
    assert worst < -0.1


def test_convolution_at_its_start_is_stationary(rng):
    x = jnp.asarray(rng.normal(size=(10, 2)))
    prior, values = prior_of(Convolution(2), x)
    features = prior.features(values[-1])
    assert_allclose(prior.top(features, features), reference.rbf(x, x, 0.8, 1.5), rtol=1e-12)


@pytest.mark.parametrize("width", [None, 3, 5])
def test_composition_at_its_start_is_stationary(rng, width):
    x = jnp.asarray(rng.normal(size=(10, 3)) * [1.0, 2.0, 0.5])
    lengthscales = jnp.asarray([0.5, 1.0, 3.0])
    prior, values = prior_of(Composition(2, width), x, lengthscales)
    features = prior.features(values[-1])
    assert_allclose(prior.top(features, features), reference.rbf(x, x, np.asarray(lengthscales), 1.5), rtol=1e-10)
    assert_allclose(jnp.mean(values[0] ** 2, axis=0)[:3], 1.0)


def test_a_narrow_composition_keeps_the_widest_directions(rng):
    plane = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 4))
    prior, values = prior_of(Composition(1, 2), jnp.asarray(plane - plane.mean(axis=0)), 1.3)
    features = prior.features(values[-1])
    assert features.shape == (20, 2)
    assert_allclose(prior.top(features, features), reference.rbf(plane, plane, 1.3, 1.5), rtol=1e-9)


def test_injective_at_its_start_is_stationary(rng):
    x = jnp.asarray(rng.uniform(size=(10, 1)))
    prior, values = prior_of(Injective(3), x)
    features = prior.features(values[-1])
    assert_allclose(prior.top(features, features), reference.rbf(x, x, 0.8, 1.5), rtol=1e-12)


def test_monotone_integral(rng):
    knots, rates = rng.uniform(size=15), rng.uniform(0.1, 2.0, size=15)
    x = np.linspace(-0.2, 1.2, 200)
    ours = np.asarray(jax.jit(monotone_integral)(knots, rates, x))
    order = np.argsort(knots)
    fine = np.linspace(-0.2, 1.2, 1_400_001)
    rate = np.interp(fine, knots[order], rates[order])
    integral = np.concatenate([[0], np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(fine))])
    expected = np.interp(x, fine, integral) - np.interp(knots.min(), fine, integral)
    assert_allclose(ours, expected, atol=1e-9)
    assert np.all(np.diff(ours) > 0)


def test_monotone_integral_with_equal_knots():
    knots, rates = jnp.asarray([0.0, 0.5, 0.5, 1.0]), jnp.asarray([1.0, 2.0, 2.0, 1.0])
    ours = monotone_integral(knots, rates, jnp.asarray([0.0, 0.5, 1.0]))
    assert_allclose(ours, [0.0, 0.75, 1.5])
    gradient = jax.grad(lambda r: jnp.sum(monotone_integral(knots, r, knots)))(rates)
    assert np.all(np.isfinite(gradient))


def test_injective_never_identifies_two_inputs(rng):
    x = jnp.asarray(np.sort(rng.uniform(size=(N, 1)), axis=0))
    u = jnp.asarray(3 * rng.normal(size=(N, 1)))
    prior, _ = prior_of(Injective(1, u_min=0.3), x)
    slopes = np.diff(prior.features(u)[:, 0]) / np.diff(x[:, 0])
    assert np.all(slopes >= 0.3**2 - 1e-12)


METHODS = {
    "standard": Standard(),
    "cross": CrossApproximation(N),
    "cross of low rank": CrossApproximation(12),
    "sparse": FullySparse(),
}
CASES = [
    ("standard", Injective(2)),
    ("cross", Composition(2)),
    pytest.param("sparse", Convolution(2), marks=pytest.mark.slow),
    pytest.param("standard", Composition(2), marks=pytest.mark.slow),
    pytest.param("cross of low rank", Convolution(2), marks=pytest.mark.slow),
    pytest.param("sparse", Injective(2), marks=pytest.mark.slow),
]


def build(method, architecture):
    columns = 1 if isinstance(architecture, Injective) else 2
    x = jnp.asarray(np.random.default_rng(3).uniform(-1, 1, size=(N, columns)))
    prior, values = prior_of(architecture, x, 0.5)
    selected = Selected(jnp.arange(0, N, 3), prior.features(values[-1])[None])
    return prior, METHODS[method].build(prior, selected), values


@pytest.mark.parametrize(("method", "architecture"), CASES, ids=str)
def test_values_whitened_variables_and_new_inputs_agree(method, architecture):
    prior, hidden, values = build(method, architecture)
    width = values[0].shape[1]
    keys = jr.split(jr.key(0), architecture.num_hidden)
    num_sites = hidden.whiten(prior, values)[0].shape[0]
    whitened = tuple(jr.normal(key, (num_sites, width)) for key in keys)
    spread = by_row(jr.normal(jr.key(2), (architecture.num_hidden, width)))

    @eqx.filter_jit
    def round_trip(whitened):
        once = hidden.values(prior, whitened)
        at_rows = hidden.at(prior, whitened, prior.x, spread)
        return once, hidden.values(prior, hidden.whiten(prior, once)), at_rows

    once, twice, at_rows = round_trip(whitened)
    for first, second in zip(once, twice, strict=True):
        assert_allclose(second, first, atol=2e-4)
    assert_allclose(at_rows, once[-1], atol=1e-3)


def test_first_layer_has_its_covariance():
    """Columns of the map from whitened variables: C Cᵀ is the covariance, exactly or of that rank."""
    for name in ("standard", "cross"):
        prior, hidden, values = build(name, Composition(1))
        root = hidden.values(prior, (jnp.eye(hidden.whiten(prior, values)[0].shape[0]),))[0]
        assert_allclose(root @ root.T, prior.bottom(prior.x, prior.x), atol=1e-8)


def test_the_error_of_a_cross_approximation_is_certified():
    prior, hidden, _ = build("cross of low rank", Composition(1))
    K = np.asarray(prior.bottom(prior.x, prior.x))
    rows = np.asarray(hidden.rows)
    missed = K - reference.low_rank(K, rows)
    assert_allclose(hidden.relative_error, np.trace(missed) / np.trace(K), rtol=1e-6)
    assert len(set(rows.tolist())) == 12
    assert np.linalg.norm(missed, 2) <= float(hidden.relative_error) * np.trace(K) * (1 + 1e-6)


@pytest.mark.slow
def test_more_rank_less_error():
    prior, values = prior_of(Composition(1), jnp.asarray(np.random.default_rng(0).normal(size=(N, 2))), 0.5)
    selected = Selected(None, prior.features(values[-1])[None])
    errors = [float(CrossApproximation(rank).build(prior, selected).relative_error) for rank in (3, 12)]
    assert errors == sorted(errors, reverse=True)


def test_tops_against_their_formulas(rng):
    x, y, new = rng.normal(size=(N, 2)), rng.normal(size=(N, 2)), rng.normal(size=(6, 2))
    covariance, noise = Stationary(RBF(0.9, 1.4)), jnp.asarray(0.1)
    K, k = reference.rbf(x, x, 0.9, 1.4), reference.rbf(new, x, 0.9, 1.4)
    rows = np.arange(0, N, 4)

    @eqx.filter_jit
    def of(top):
        return (
            top.log_likelihood(covariance, jnp.asarray(x), jnp.asarray(y), noise),
            top.condition(covariance, jnp.asarray(x), jnp.asarray(y), noise).predict(covariance, jnp.asarray(new)),
        )

    likelihood, (mean, variance) = of(SparseTop(jnp.asarray(rows)))
    assert_allclose(likelihood, reference.log_likelihood(reference.low_rank(K, rows), y, 0.1), rtol=1e-10)
    expected = reference.sparse_prediction(K, k, 1.4, rows, y, 0.1)
    assert_allclose(mean, expected[0], atol=1e-9)
    assert_allclose(variance, expected[1], atol=1e-9)

    likelihood, (mean, variance) = of(ExactTop())
    C = K + 0.1 * np.eye(N)
    assert_allclose(likelihood, reference.log_likelihood(K, y, 0.1), rtol=1e-10)
    assert_allclose(mean, k @ np.linalg.solve(C, y), atol=1e-10)
    assert_allclose(variance, 1.4 - np.sum(k * np.linalg.solve(C, k.T).T, axis=1), atol=1e-10)


@pytest.mark.slow
def test_float32_stays(rng):
    x = jnp.asarray(rng.normal(size=(N, 2)), jnp.float32)
    prior, values = prior_of(Composition(2), x, jnp.asarray([0.5, 0.5], jnp.float32), jnp.asarray(1.0, jnp.float32))
    prior = cast(prior, jnp.float32)
    hidden = CrossApproximation(10).build(prior, Selected(None, prior.features(values[-1])[None]))
    whitened = tuple(jnp.ones((10, 2), jnp.float32) for _ in range(2))
    assert all(u.dtype == jnp.float32 for u in hidden.values(prior, whitened))


@pytest.mark.parametrize(
    "make",
    [
        lambda: SquaredClip(2.0, 1.0),
        lambda: SquaredClip(0.0, 1.0),
        lambda: Injective(u_min=0.0),
        lambda: Injective(u_min=1.5),
        lambda: Composition(0),
        lambda: Composition(width=0),
        lambda: Convolution(lengthscale=-1.0),
        lambda: CrossApproximation(0),
        lambda: Injective().check(2),
    ],
)
def test_settings_that_make_no_sense(make):
    with pytest.raises(InputError):
        make()
