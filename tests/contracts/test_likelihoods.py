"""What every likelihood promises: against 10⁶ draws, summed over all outcomes, with missing outputs."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from contracts.completeness import final_subclasses
from dgpax.distributions import Gaussian
from dgpax.errors import InputError
from dgpax.likelihoods import (
    AbstractClassification,
    AbstractLikelihood,
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
from dgpax.parameters import cast, combine, partition

N = 2
NUM_SAMPLES, NUM_CHUNKS = 1_000_000, 20


class Row(NamedTuple):
    """A likelihood, targets [N, P], a wrong target, and all outcomes of y with their weights (a rule for ∫ … dy).

    `shorter` is the same model without its last output, and which latent functions it keeps; None for one output.
    """

    likelihood: AbstractLikelihood
    y: np.ndarray
    wrong: float
    outcomes: tuple[np.ndarray, np.ndarray]
    shorter: tuple[AbstractLikelihood, list[int]] | None


def real_line():
    t = np.linspace(-14.0, 14.0, 1201)
    return np.sinh(t), np.cosh(t) * (t[1] - t[0])


def half_line():
    t = np.linspace(-40.0, 8.0, 1201)
    return np.exp(t), np.exp(t) * (t[1] - t[0])


def unit_interval():
    t = np.linspace(-36.0, 36.0, 1201)
    y = 1 / (1 + np.exp(-t))
    return y, y * (1 - y) * (t[1] - t[0])


def integers(count):
    return np.arange(float(count)), np.ones(count)


def first_of_two(rule):
    """Outcomes of the first of two outputs, the second missing."""
    points, weights = rule
    return np.stack([points, np.full_like(points, np.nan)], axis=1), weights


def product(first, second):
    points = np.stack(np.meshgrid(first[0], second[0], indexing="ij"), axis=-1).reshape(-1, 2)
    return points, np.outer(first[1], second[1]).ravel()


def scalar(likelihood, y, wrong, rule):
    return Row(likelihood, np.asarray(y), wrong, first_of_two(rule), (likelihood, [0]))


def multiclass(likelihood):
    points, weights = integers(3)
    return Row(likelihood, np.array([[2.0], [0.0]]), 3.0, (points[:, None], weights), None)


def plane():
    t = np.linspace(-12.0, 12.0, 97)
    return product((t, np.full(97, t[1] - t[0])), (t, np.full(97, t[1] - t[0])))


REAL_TARGETS = [[0.3, -1.2], [1.1, 0.4]]
BINARY_TARGETS = [[1.0, 0.0], [0.0, 1.0]]
COUNT_TARGETS = [[0.0, 3.0], [2.0, 1.0]]
ROOT = np.array([[0.9, 0.0], [0.5, 0.6]])
LIKELIHOODS = {
    GaussianNoise: lambda: scalar(GaussianNoise(0.4), REAL_TARGETS, np.inf, real_line()),
    CorrelatedGaussianNoise: lambda: Row(
        CorrelatedGaussianNoise(ROOT),
        np.array(REAL_TARGETS),
        np.inf,
        plane(),
        (CorrelatedGaussianNoise(ROOT[:1, :1]), [0]),
    ),
    HeteroskedasticGaussian: lambda: Row(
        HeteroskedasticGaussian(),
        np.array(REAL_TARGETS),
        -np.inf,
        first_of_two(real_line()),
        (HeteroskedasticGaussian(), [0, 2]),
    ),
    StudentT: lambda: scalar(StudentT(0.3, 3.0), REAL_TARGETS, np.inf, real_line()),
    BernoulliProbit: lambda: scalar(BernoulliProbit(), BINARY_TARGETS, -1.0, integers(2)),
    BernoulliLogit: lambda: scalar(BernoulliLogit(), BINARY_TARGETS, 0.5, integers(2)),
    Ordinal: lambda: scalar(Ordinal([-0.8, 0.1, 0.9], 0.5), [[0.0, 3.0], [2.0, 1.0]], 4.0, integers(4)),
    RobustMax: lambda: multiclass(RobustMax(3, epsilon=0.01)),
    Softmax: lambda: multiclass(Softmax(3)),
    Poisson: lambda: scalar(Poisson(1.5), COUNT_TARGETS, -1.0, integers(400)),
    NegativeBinomial: lambda: scalar(NegativeBinomial(0.3, 1.5), COUNT_TARGETS, 1.5, integers(800)),
    Gamma: lambda: scalar(Gamma(2.5), [[0.5, 2.0], [1.5, 0.2]], 0.0, half_line()),
    Beta: lambda: scalar(Beta(6.0), [[0.2, 0.9], [0.5, 0.4]], 1.0, unit_interval()),
    PerOutput: lambda: Row(
        PerOutput([Gamma(2.5), Softmax(3)]),
        np.array([[0.5, 2.0], [1.5, 0.0]]),
        -1.0,
        product(half_line(), integers(3)),
        (PerOutput([Gamma(2.5)]), [0]),
    ),
}
CLASSIFICATIONS = [kind for kind in LIKELIHOODS if issubclass(kind, AbstractClassification)]
every_likelihood = pytest.mark.parametrize("kind", LIKELIHOODS, ids=lambda kind: kind.__name__)


def make_q(likelihood, y, *batch):
    rng = np.random.default_rng(3)
    shape = (*batch, y.shape[0], likelihood.num_latents(y.shape[1]))
    return Gaussian(jnp.asarray(rng.normal(0.0, 0.7, shape)), jnp.asarray(rng.uniform(0.1, 0.6, shape)))


@eqx.filter_jit
def densities(likelihood, q, y):
    return {
        "log_prob": likelihood.log_prob(q.mean, y),
        "expected_log_prob": likelihood.expected_log_prob(q, y),
        "predictive_log_prob": likelihood.predictive_log_prob(q, y),
    }


@eqx.filter_jit
def predictive_log_prob(likelihood, q, y):
    return likelihood.predictive_log_prob(q, y)


@eqx.filter_jit
def moments(likelihood, q):
    return {
        "conditional_mean": likelihood.conditional_mean(q.mean),
        "conditional_variance": likelihood.conditional_variance(q.mean),
        "predictive_mean": likelihood.predictive_mean(q),
        "predictive_variance": likelihood.predictive_variance(q),
    }


@eqx.filter_jit
def classify(likelihood, q, y):
    return likelihood.class_probabilities(q), likelihood.predictive_log_prob(q, y)


@eqx.filter_jit
def draw(likelihood, key, f):
    y = likelihood.sample(key, f)
    return y, likelihood.encode(y)


@eqx.filter_jit
def monte_carlo(likelihood, q, y, predictive_mean, key):
    """Mean and standard error over the draws of log p(y|f), p(y|f), E[y|f] and Var[y|f] + (E[y|f] − E y)²."""

    def chunk(key):
        f = q.sample(key, NUM_SAMPLES // NUM_CHUNKS)
        log_prob = likelihood.log_prob(f, y)
        mean = likelihood.conditional_mean(f)
        spread = likelihood.conditional_variance(f) + (mean - predictive_mean) ** 2
        statistics = (log_prob, jnp.exp(log_prob), mean, spread)
        return jax.tree.map(lambda s: (jnp.mean(s, axis=0), jnp.mean(s**2, axis=0)), statistics)

    sums = jax.lax.map(chunk, jr.split(key, NUM_CHUNKS))

    def summarise(pair):
        mean, square = (jnp.mean(part, axis=0) for part in pair)
        return mean, jnp.sqrt(jnp.maximum(square - mean**2, 0.0) / NUM_SAMPLES)

    return [summarise(pair) for pair in sums]


def test_every_likelihood_has_a_row():
    assert set(LIKELIHOODS) == final_subclasses(AbstractLikelihood)


@pytest.mark.slow
@every_likelihood
def test_integrals_agree_with_a_million_draws(kind, key):
    """4 standard errors: with about 140 comparisons a right formula fails with probability 0.01, were the key free."""
    row = LIKELIHOODS[kind]()
    y = jnp.asarray(row.y)
    q = make_q(row.likelihood, row.y)
    value, moment = densities(row.likelihood, q, y), moments(row.likelihood, q)
    claims = (
        value["expected_log_prob"],
        jnp.exp(value["predictive_log_prob"]),
        moment["predictive_mean"],
        moment["predictive_variance"],
    )
    estimates = monte_carlo(row.likelihood, q, y, moment["predictive_mean"], key)
    for claim, (mean, error) in zip(claims, estimates, strict=True):
        assert np.all(np.abs(claim - mean) <= 4.0 * error + 1e-9)


@every_likelihood
def test_predictive_density_adds_up_to_one(kind):
    row = LIKELIHOODS[kind]()
    points, weights = row.outcomes
    q = make_q(row.likelihood, row.y)
    each = Gaussian(*(jnp.repeat(part[:, None], len(points), axis=1) for part in (q.mean, q.variance)))
    log_density = predictive_log_prob(row.likelihood, each, jnp.asarray(points))
    np.testing.assert_allclose(np.exp(log_density) @ weights, 1.0, atol=1e-6)


@every_likelihood
def test_a_missing_output_is_marginalised(kind):
    row = LIKELIHOODS[kind]()
    q = make_q(row.likelihood, row.y)
    y = row.y.copy()
    y[:, -1] = np.nan
    got = densities(row.likelihood, q, jnp.asarray(y))
    if row.shorter is None:
        wanted = {name: np.zeros(N) for name in got}
    else:
        likelihood, latents = row.shorter
        fewer = Gaussian(q.mean[..., latents], q.variance[..., latents])
        wanted = densities(likelihood, fewer, jnp.asarray(y[:, :-1]))
    for name in got:
        np.testing.assert_allclose(got[name], wanted[name], rtol=1e-14, atol=1e-14, err_msg=name)
    nothing = densities(row.likelihood, q, jnp.full_like(y, np.nan))
    for name in nothing:
        np.testing.assert_array_equal(nothing[name], 0.0, err_msg=name)


@every_likelihood
def test_gradients_are_right_with_missing_outputs_and_finite_without_variance(kind):
    row = LIKELIHOODS[kind]()
    y = row.y.copy()
    y[0, -1] = np.nan
    q = make_q(row.likelihood, row.y)
    certain = Gaussian(q.mean, jnp.zeros_like(q.variance))
    trainable, rest = partition(row.likelihood)

    @eqx.filter_jit
    @jax.grad
    def gradient(arguments):
        trainable, q = arguments
        values = densities(combine(trainable, rest), q, jnp.asarray(y))
        return sum(jnp.sum(value) for value in values.values())

    for each in (q, certain):
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient((trainable, each))))

    def total(step):
        moved = Gaussian(q.mean + step, q.variance + 0.5 * step)
        return sum(jnp.sum(value) for value in densities(row.likelihood, moved, jnp.asarray(y)).values())

    slope = gradient((trainable, q))[1]
    numerical = (total(1e-4) - total(-1e-4)) / 2e-4
    np.testing.assert_allclose(jnp.sum(slope.mean) + 0.5 * jnp.sum(slope.variance), numerical, rtol=1e-5, atol=1e-5)


@every_likelihood
def test_single_precision_under_vmap_agrees_with_double(kind):
    row = LIKELIHOODS[kind]()
    q = make_q(row.likelihood, row.y, 3)
    y = jnp.asarray(row.y)
    one_by_one = [Gaussian(*pair) for pair in zip(q.mean, q.variance, strict=True)]
    double = [densities(row.likelihood, one, y) | moments(row.likelihood, one) for one in one_by_one]
    single_likelihood = cast(row.likelihood, jnp.float32)
    single_q, single_y = cast(q, jnp.float32), y.astype(jnp.float32)
    single = jax.vmap(lambda q: densities(single_likelihood, q, single_y) | moments(single_likelihood, q))(single_q)
    for name, value in single.items():
        assert value.dtype == jnp.float32, name
        wanted = np.stack([values[name] for values in double])
        np.testing.assert_allclose(value, wanted, rtol=2e-4, atol=2e-5, err_msg=name)
    assert eqx.filter_eval_shape(draw, single_likelihood, jr.key(0), single_q.mean)[0].dtype == jnp.float32


@every_likelihood
def test_samples_have_the_conditional_moments(kind):
    """5,000 draws against the conditional mean and variance, 4.5 standard errors."""
    row = LIKELIHOODS[kind]()
    q = make_q(row.likelihood, row.y)
    f = jnp.broadcast_to(q.mean, (5_000, *q.mean.shape))
    y, encoded = map(np.asarray, draw(row.likelihood, jr.key(5), f))
    row.likelihood.check_targets(y)
    moment = moments(row.likelihood, q)
    if kind is not StudentT:  # with 3 degrees of freedom the sample variance has no standard error
        square = (encoded - moment["conditional_mean"]) ** 2
        error = np.std(square, axis=0) / np.sqrt(len(square))
        assert np.all(np.abs(np.mean(square, axis=0) - moment["conditional_variance"]) <= 4.5 * error + 1e-12)
    error = np.std(encoded, axis=0) / np.sqrt(len(encoded))
    assert np.all(np.abs(np.mean(encoded, axis=0) - moment["conditional_mean"]) <= 4.5 * error + 1e-12)


@every_likelihood
def test_targets_are_checked(kind):
    row = LIKELIHOODS[kind]()
    row.likelihood.check_targets(row.y)
    row.likelihood.check_targets(np.full_like(row.y, np.nan))
    wrong = row.y.copy()
    wrong[-1, 0] = row.wrong
    for bad in (wrong, row.y.astype(str), row.y[:, 0], row.y.astype(complex)):
        with pytest.raises(InputError):
            row.likelihood.check_targets(bad)


@pytest.mark.parametrize("kind", CLASSIFICATIONS, ids=lambda kind: kind.__name__)
def test_class_probabilities_add_up_to_one(kind):
    row = LIKELIHOODS[kind]()
    likelihood, y = row.likelihood, jnp.asarray(row.y[:, :1])
    q = make_q(likelihood, row.y[:, :1], 3)
    for scale in (1.0, 30.0):
        wide = Gaussian(scale * q.mean, scale**2 * q.variance)
        probabilities, log_prob = classify(likelihood, wide, y)
        np.testing.assert_allclose(np.sum(probabilities, axis=-1), 1.0, atol=1e-12)
        labels = jnp.broadcast_to(y, (*probabilities.shape[:-1], 1)).astype(int)
        chosen = jnp.log(jnp.take_along_axis(probabilities, labels, axis=-1))[..., 0]
        np.testing.assert_allclose(log_prob, chosen, rtol=1e-12)
