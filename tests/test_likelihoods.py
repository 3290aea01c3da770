"""Likelihoods against SciPy, against brute-force integrals, far in the tails, and when misused."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference import likelihoods as reference
from scipy.special import erfcx

from dgpax.distributions import Gaussian, GaussianOverOutputs
from dgpax.errors import InputError
from dgpax.likelihoods import (
    AbstractScalarLikelihood,
    BernoulliLogit,
    BernoulliProbit,
    Beta,
    CorrelatedGaussianNoise,
    Gamma,
    GaussianNoise,
    HeteroskedasticGaussian,
    NegativeBinomial,
    Ordinal,
    PerOutput,
    Poisson,
    RobustMax,
    Softmax,
    StudentT,
)
from dgpax.likelihoods._normal import log_ndtr
from dgpax.parameters import cast, find, fixed

pytestmark = pytest.mark.slow

EDGES = np.array([-0.8, 0.1, 0.9])
REAL = np.linspace(-3.0, 4.0, 7)
BINARY = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0])
COUNTS = np.array([0.0, 1.0, 2.0, 5.0, 40.0, 300.0, 0.0])
BINS = np.array([0.0, 1.0, 2.0, 3.0, 3.0, 0.0, 1.0])
POSITIVE = np.array([0.01, 0.3, 1.0, 2.0, 5.0, 9.0, 40.0])
UNIT = np.linspace(0.03, 0.97, 7)


class Case(NamedTuple):
    """A likelihood, targets, the same log density by SciPy, near which f it peaks, and how exact the integrals are."""

    likelihood: AbstractScalarLikelihood
    y: np.ndarray
    log_density: Callable
    peak: np.ndarray
    expected_tolerance: float
    predictive_tolerance: float


CASES = {
    "gaussian": Case(GaussianNoise(0.4), REAL, lambda f, y: reference.gaussian(f, y, 0.4), REAL, 1e-10, 1e-10),
    "student": Case(StudentT(0.3, 3.5), REAL, lambda f, y: reference.student_t(f, y, 0.3, 3.5), REAL, 1e-9, 1e-10),
    "probit": Case(BernoulliProbit(), BINARY, reference.bernoulli_probit, BINARY, 1e-8, 1e-10),
    "logit": Case(BernoulliLogit(), BINARY, reference.bernoulli_logit, BINARY, 1e-6, 1e-6),
    "ordinal": Case(Ordinal(EDGES, 0.5), BINS, lambda f, y: reference.ordinal(f, y, EDGES, 0.5), BINS, 1e-6, 1e-10),
    "poisson": Case(Poisson(1.5), COUNTS, lambda f, y: reference.poisson(f, y, 1.5), np.log1p(COUNTS), 1e-10, 1e-6),
    "negative binomial": Case(
        NegativeBinomial(0.3, 1.5),
        COUNTS,
        lambda f, y: reference.negative_binomial(f, y, 0.3, 1.5),
        np.log1p(COUNTS),
        1e-8,
        1e-6,
    ),
    "gamma": Case(Gamma(2.5), POSITIVE, lambda f, y: reference.gamma(f, y, 2.5), np.log(POSITIVE), 1e-10, 1e-6),
    "beta": Case(Beta(6.0), UNIT, lambda f, y: reference.beta(f, y, 6.0), np.log(UNIT / (1 - UNIT)), 1e-8, 1e-6),
}
every_scalar = pytest.mark.parametrize("name", CASES)


def column(values):
    return jnp.asarray(np.asarray(values, float)[:, None])


@eqx.filter_jit
def integrals(likelihood, q, y):
    return likelihood.expected_log_prob(q, y), likelihood.predictive_log_prob(q, y)


@eqx.filter_jit
def integrals_and_gradient(likelihood, q, y):
    def total(q):
        values = integrals(likelihood, q, y)
        return jnp.sum(values[0]) + jnp.sum(values[1]), values

    return eqx.filter_grad(total, has_aux=True)(q)


@every_scalar
def test_log_density_agrees_with_scipy(name, rng):
    case = CASES[name]
    f = rng.normal(size=7)
    got = case.likelihood.log_prob(column(f), column(case.y))
    assert_allclose(got, case.log_density(f, case.y), rtol=1e-10, atol=1e-10)


@every_scalar
def test_integrals_agree_with_adaptive_quadrature(name, rng):
    case = CASES[name]
    mean, variance = rng.normal(size=7), rng.uniform(0.1, 1.0, size=7)
    q = Gaussian(column(mean), column(variance))
    rows = list(zip(mean, variance, case.y, case.peak, strict=True))
    expected = [
        reference.expectation(lambda f, y=y: case.log_density(f, y), m, v, (peak, 0.2)) for m, v, y, peak in rows
    ]
    density = [
        reference.expectation(lambda f, y=y: np.exp(case.log_density(f, y)), m, v, (peak, 0.2))
        for m, v, y, peak in rows
    ]
    got_expected, got_log_density = integrals(case.likelihood, q, column(case.y))
    tolerance = case.expected_tolerance
    assert_allclose(got_expected, expected, rtol=tolerance, atol=tolerance)
    assert_allclose(jnp.exp(got_log_density), density, rtol=case.predictive_tolerance)


@pytest.mark.parametrize("count", [0, 20, 1000, 1e6])
def test_predictive_density_of_counts_is_right_between_the_nodes_of_a_fixed_rule(count):
    """At a count of 1000 a fixed 20-node rule is wrong by a factor of three here."""
    mean, variance = np.log(count + 1) - 0.7, 0.8
    _, got = integrals(Poisson(), Gaussian(column([mean]), column([variance])), column([count]))
    wanted = reference.expectation(
        lambda f: np.exp(reference.poisson(f, count, 1.0)), mean, variance, (np.log(count + 1), (count + 1) ** -0.5)
    )
    assert_allclose(jnp.exp(got), [wanted], rtol=1e-7)


@pytest.mark.parametrize(("scale", "degrees_of_freedom"), [(0.01, 3.0), (0.1, 1.0), (0.1, 50.0), (2.0, 4.0)])
def test_student_t_narrow_against_the_variance_of_f(scale, degrees_of_freedom):
    likelihood = StudentT(scale, degrees_of_freedom)
    y = np.array([0.1, 3.0, 50.0])
    q = Gaussian(jnp.zeros((3, 1)), jnp.ones((3, 1)))
    log_densities = [lambda f, y=y_n: reference.student_t(f, y, scale, degrees_of_freedom) for y_n in y]
    expected = [reference.expectation(g, 0.0, 1.0, (y_n, scale)) for g, y_n in zip(log_densities, y, strict=True)]
    density = [
        reference.expectation(lambda f, g=g: np.exp(g(f)), 0.0, 1.0, (y_n, scale))
        for g, y_n in zip(log_densities, y, strict=True)
    ]
    got_expected, got_log_density = integrals(likelihood, q, column(y))
    assert_allclose(got_expected, expected, rtol=1e-8)
    assert_allclose(jnp.exp(got_log_density), density, rtol=1e-6)


def test_student_t_has_infinite_variance_up_to_two_degrees_of_freedom():
    f = jnp.zeros((1, 1))
    assert np.isinf(StudentT(1.0, 2.0).conditional_variance(f))
    assert_allclose(StudentT(2.0, 4.0).conditional_variance(f), 8.0)


def test_noise_may_differ_between_outputs(rng):
    f, y, noise = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), np.array([0.1, 1.0, 3.0])
    got = GaussianNoise(noise).log_prob(jnp.asarray(f), jnp.asarray(y))
    assert_allclose(got, np.sum(reference.gaussian(f, y, noise), axis=1), rtol=1e-12)


def test_heteroskedastic_takes_means_first_then_log_noise(rng):
    f, g, y = rng.normal(size=(3, 5, 2))
    likelihood = HeteroskedasticGaussian()
    assert likelihood.num_latents(2) == 4
    latents = jnp.asarray(np.concatenate([f, g], axis=1))
    assert_allclose(
        likelihood.log_prob(latents, jnp.asarray(y)), np.sum(reference.heteroskedastic(f, g, y), axis=1), rtol=1e-11
    )
    assert_allclose(likelihood.conditional_mean(latents), f)
    assert_allclose(likelihood.conditional_variance(latents), np.exp(g), rtol=1e-14)


def _covariances(rng, count, size):
    root = rng.normal(size=(count, size, size))
    return root @ np.swapaxes(root, -1, -2) + 0.1 * np.eye(size)


def test_correlated_noise_agrees_with_the_sub_blocks_of_scipy(rng):
    """Any pattern of missing outputs, with correlations in q(f) too: eq. (42) and (46) of van der Wilk et al. 2020."""
    root = np.tril(rng.normal(size=(3, 3)))
    noise = root @ root.T
    y = rng.normal(size=(4, 3))
    y[0, 1] = y[1, 0] = y[1, 2] = np.nan
    y[2] = np.nan
    mean, V = rng.normal(size=(4, 3)), _covariances(rng, 4, 3)
    likelihood = CorrelatedGaussianNoise(root)
    q = GaussianOverOutputs(jnp.asarray(mean), jnp.asarray(V))
    log_prob = [reference.correlated_gaussian(m, t, noise) for m, t in zip(mean, y, strict=True)]
    got_expected, got_predictive = integrals(likelihood, q, jnp.asarray(y))
    assert_allclose(likelihood.log_prob(q.mean, jnp.asarray(y)), log_prob, rtol=1e-10)
    predictive = [reference.correlated_gaussian(m, t, noise + C) for m, t, C in zip(mean, y, V, strict=True)]
    assert_allclose(got_predictive, predictive, rtol=1e-10)
    traces = []
    for t, C in zip(y, V, strict=True):
        seen = np.ix_(~np.isnan(t), ~np.isnan(t))
        traces.append(np.trace(np.linalg.solve(noise[seen], C[seen])))
    assert_allclose(got_expected, np.array(log_prob) - 0.5 * np.array(traces), rtol=1e-10)
    assert_allclose(likelihood.predictive_variance(q), np.diagonal(V + noise, axis1=1, axis2=2), rtol=1e-12)


def test_correlated_noise_with_a_diagonal_root_is_independent_noise(rng):
    noise = np.array([0.3, 2.0])
    q = Gaussian(jnp.asarray(rng.normal(size=(5, 4, 2))), jnp.asarray(rng.uniform(0.1, 1.0, size=(5, 4, 2))))
    y = jnp.asarray(rng.normal(size=(4, 2))).at[0, 1].set(jnp.nan)
    one, other = CorrelatedGaussianNoise(np.diag(np.sqrt(noise))), GaussianNoise(noise)
    for got, wanted in zip(integrals(one, q, y), integrals(other, q, y), strict=True):
        assert_allclose(got, wanted, rtol=1e-12)
    assert_allclose(one.predictive_variance(q), other.predictive_variance(q), rtol=1e-12)


def test_multiclass_log_density(rng):
    f, y = rng.normal(size=(6, 4)), rng.integers(0, 4, size=6).astype(float)
    assert_allclose(Softmax(4).log_prob(jnp.asarray(f), column(y)), reference.softmax(f, y), rtol=1e-12)
    got = RobustMax(4, epsilon=0.02).log_prob(jnp.asarray(f), column(y))
    assert_allclose(got, reference.robust_max(f, y, 0.02), rtol=1e-12)


@pytest.mark.parametrize("spread", [1.0, 5.0])
def test_robust_max_with_classes_of_unequal_variance(spread, rng):
    mean, stddev = rng.normal(size=(5, 3)), rng.uniform(1.0, spread, size=(5, 3))
    q = Gaussian(jnp.asarray(mean), jnp.asarray(stddev**2))
    largest = np.stack([reference.probability_largest(m, s) for m, s in zip(mean, stddev, strict=True)])
    likelihood = RobustMax(3, epsilon=0.01)
    assert_allclose(likelihood.class_probabilities(q), 0.99 * largest + 0.005 * (1 - largest), atol=1e-7)
    wanted = largest * np.log(0.99) + (1 - largest) * np.log(0.005)
    assert_allclose(likelihood.expected_log_probabilities(q), wanted, atol=1e-6)


@pytest.mark.parametrize(("variance", "tolerance"), [(1.0, 1e-6), (4.0, 1e-4)])
def test_softmax_equals_the_product_rule(variance, tolerance, rng):
    mean, variances = rng.normal(size=3), variance * rng.uniform(0.5, 1.5, size=3)
    q = Gaussian(jnp.asarray(mean[None]), jnp.asarray(variances[None]))
    log_sum, probabilities = reference.softmax_expectations(mean, variances)
    assert_allclose(Softmax(3).expected_log_probabilities(q)[0], mean - log_sum, atol=tolerance)
    assert_allclose(Softmax(3).class_probabilities(q)[0], probabilities, atol=tolerance)


def test_one_hot_encoding_keeps_missing_labels_missing():
    encoded = Softmax(3).encode(column([2.0, np.nan, 0.0]))
    np.testing.assert_array_equal(encoded, [[0, 0, 1], [np.nan] * 3, [1, 0, 0]])


def _finite_integrals(likelihood, mean, variance, y, dtype):
    """Both integrals, after checking that they and their gradients are finite."""
    q = Gaussian(jnp.asarray(mean, dtype), jnp.asarray(variance, dtype))
    y = jnp.asarray(y, dtype)
    gradient, values = integrals_and_gradient(likelihood, q, y)
    assert all(value.dtype == dtype for value in values)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves((values, gradient)))
    return values


both_precisions = pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])


@both_precisions
def test_bernoulli_far_in_the_tails(dtype):
    mean, variance = [[-1e5], [1e5], [-300.0], [300.0]], np.full((4, 1), 1e-3)
    y = [[1.0], [0.0], [0.0], [1.0]]
    for value in _finite_integrals(BernoulliProbit(), mean, variance, y, dtype):
        assert_allclose(value, [-5e9, -5e9, 0.0, 0.0], rtol=2e-3, atol=1e-30)
    for value in _finite_integrals(BernoulliLogit(), mean, variance, y, dtype):
        assert_allclose(value, [-1e5, -1e5, 0.0, 0.0], rtol=1e-5, atol=2 * float(jnp.finfo(dtype).eps))


@both_precisions
def test_multiclass_far_in_the_tails(dtype):
    mean, variance = [[1e6, 0.0, -1e6], [0.0, 0.0, 0.0]], [[1e-3, 1.0, 1e3], [0.0, 0.0, 0.0]]
    likelihood = RobustMax(3)
    for value in _finite_integrals(likelihood, mean, variance, [[2.0], [1.0]], dtype):
        assert_allclose(value[0], np.log(0.5e-3), rtol=1e-5)
    q = Gaussian(jnp.asarray(mean, dtype), jnp.asarray(variance, dtype))
    assert_allclose(likelihood.class_probabilities(q), [[1 - 1e-3, 0.5e-3, 0.5e-3], [1 / 3] * 3], rtol=1e-5)
    _finite_integrals(Softmax(3), [[1e3, 0.0, -1e3], [0.0, 0.0, 0.0]], variance, [[2.0], [1.0]], dtype)


@both_precisions
def test_extreme_counts(dtype):
    mean, variance = [[0.0], [5.0], [20.0], [-30.0], [20.0]], np.full((5, 1), 0.5)
    y = [[0.0], [0.0], [1e9], [1e9], [0.0]]
    for likelihood in (Poisson(), NegativeBinomial(0.5)):
        _finite_integrals(cast(likelihood, dtype), mean, variance, y, dtype)


@both_precisions
def test_ordinal_and_beta_far_in_the_tails(dtype):
    mean, variance = [[-1e3], [1e3], [40.0], [0.0]], np.full((4, 1), 0.1)
    _finite_integrals(cast(Ordinal(EDGES, 0.5), dtype), mean, variance, [[1.0], [2.0], [0.0], [3.0]], dtype)
    _finite_integrals(cast(Beta(5.0), dtype), mean, variance, [[0.999], [1e-6], [0.5], [0.5]], dtype)


def test_derivative_of_the_log_normal_cdf():
    """φ/Φ = √(2/π)/erfcx(−z/√2), also where exp(log φ − log Φ) overflows."""
    z = np.array([-1e150, -1e12, -1e5, -70.0, -60.1, -59.9, -8.0, 0.0, 3.0])
    slope = jax.jit(jax.vmap(jax.grad(log_ndtr)))(jnp.asarray(z))
    assert_allclose(slope, np.sqrt(2 / np.pi) / erfcx(-z / np.sqrt(2)), rtol=1e-11)
    curvature = jax.jit(jax.vmap(jax.grad(jax.grad(log_ndtr))))(jnp.asarray(z))
    assert_allclose(curvature[:3], -1.0, rtol=1e-9)
    assert_allclose(curvature[5:], -slope[5:] * (z[5:] + slope[5:]), rtol=1e-9)


def test_ordinal_edges_stay_increasing_whatever_the_raw_values(rng):
    likelihood = Ordinal(EDGES, 0.5)
    assert_allclose(likelihood.edges, EDGES, rtol=1e-12)
    assert likelihood.num_classes == 4
    raw = jnp.asarray(10 * rng.normal(size=2))
    moved = eqx.tree_at(lambda node: node.edge_steps.raw, likelihood, raw)
    assert np.all(np.diff(moved.edges) > 0)


def test_ordinal_with_one_edge_is_probit(rng):
    q = Gaussian(column(rng.normal(size=7)), column(rng.uniform(0.1, 1.0, size=7)))
    one, other = Ordinal([0.0]), BernoulliProbit()
    assert_allclose(
        one.predictive_log_prob(q, column(BINARY)), other.predictive_log_prob(q, column(BINARY)), rtol=1e-10
    )
    assert_allclose(one.class_probabilities(q), other.class_probabilities(q), rtol=1e-10)


def test_negative_binomial_without_dispersion_is_poisson(rng):
    f = column(rng.normal(size=7))
    got = NegativeBinomial(fixed(1e-9)).log_prob(f, column(COUNTS))
    assert_allclose(got, Poisson().log_prob(f, column(COUNTS)), rtol=1e-4, atol=1e-4)


def test_per_output_gives_every_output_its_own_latent_functions(rng):
    parts = (GaussianNoise(0.3), RobustMax(3), HeteroskedasticGaussian())
    likelihood = PerOutput(parts)
    assert likelihood.num_latents(3) == 6
    f = jnp.asarray(rng.normal(size=(2, 4, 6)))
    y = jnp.asarray(np.stack([rng.normal(size=4), rng.integers(0, 3, size=4), rng.normal(size=4)], axis=1))
    wanted = sum(
        part.log_prob(f[..., slice(*ends)], y[:, p : p + 1])
        for p, (part, ends) in enumerate(zip(parts, [(0, 1), (1, 4), (4, 6)], strict=True))
    )
    assert_allclose(likelihood.log_prob(f, y), wanted, rtol=1e-14)
    assert likelihood.sample(jr.key(0), f).shape == (2, 4, 3)
    assert likelihood.conditional_mean(f).shape == (2, 4, 5)
    assert list(find(likelihood)) == ["likelihoods[0].noise_variance"]


@pytest.mark.parametrize(
    ("misuse", "words"),
    [
        (lambda: Ordinal([0.0, 0.0]), "increasing edges"),
        (lambda: Ordinal([]), "increasing edges"),
        (lambda: Poisson(0.0), "exposure"),
        (lambda: RobustMax(1), "at least 2 classes"),
        (lambda: Softmax(1), "at least 2 classes"),
        (lambda: RobustMax(3, epsilon=0.0), "epsilon"),
        (lambda: PerOutput(()), "at least one"),
        (lambda: PerOutput((Poisson(), CorrelatedGaussianNoise(np.eye(2)))), "root for 2 outputs"),
        (lambda: PerOutput((Poisson(), Poisson())).num_latents(3), "one likelihood for each"),
        (lambda: CorrelatedGaussianNoise(np.eye(2)).num_latents(3), r"\(3, 3\)"),
        (lambda: Softmax(3).num_latents(2), "PerOutput"),
        (lambda: Softmax(3).check_targets(np.zeros((4, 2))), "PerOutput"),
        (lambda: BernoulliLogit().class_probabilities(Gaussian(jnp.zeros((3, 2)), jnp.ones((3, 2)))), "one column"),
        (lambda: Poisson().check_targets([[1.0], [-2.0]]), "counts 0, 1, 2.* such as -2"),
        (lambda: Softmax(3).check_targets([[0.0], [3.0]]), "labels 0, …, 2.* such as 3"),
        (lambda: Beta().check_targets([[0.5], [1.0]]), "strictly between 0 and 1.* such as 1"),
        (lambda: Gamma().check_targets([[0.5], [0.0]]), "positive numbers.* such as 0"),
        (lambda: GaussianNoise().check_targets([["a"], ["b"]]), "dtype <U1"),
        (lambda: GaussianNoise().check_targets([1.0, 2.0]), r"y\[:, None\]"),
        (lambda: GaussianNoise().check_targets([[1.0], [np.inf]]), "such as inf"),
    ],
)
def test_misuse_says_what_to_do(misuse, words):
    with pytest.raises(InputError, match=words):
        misuse()
