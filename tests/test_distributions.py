"""Predictive distributions against SciPy, numerical integration and Monte Carlo (4 standard errors, fixed seeds)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import scores as reference
from scipy import stats

from dgpax.distributions import Affine, Gaussian, GaussianOverBoth, GaussianOverInputs, GaussianOverOutputs, Mixture
from dgpax.errors import InputError

PROBABILITIES = np.array([1e-9, 1e-3, 0.05, 0.3, 0.5, 0.77, 0.95, 0.999])


@pytest.fixture
def without_shape_hook():
    """The import hook of the tests refuses wrong shapes first; users meet the library's own errors."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def make_gaussian(rng, shape=(4, 2), dtype: type = np.float64) -> Gaussian:
    mean, variance = rng.normal(size=shape), rng.gamma(2.0, size=shape)
    return Gaussian(jnp.asarray(mean, dtype), jnp.asarray(variance, dtype))


def make_mixture(rng, shape=(3, 4, 2), dtype: type = np.float64) -> Mixture:
    return Mixture(make_gaussian(rng, shape, dtype), jnp.asarray(rng.normal(size=shape[0]), dtype))


def entries(mixture: Mixture):
    """(index, means [S], stddevs [S], weights [S]) of every entry."""
    means, stddevs = np.asarray(mixture.components.mean), np.asarray(mixture.components.stddev)
    for index in np.ndindex(means.shape[1:]):
        here = (slice(None), *index)
        yield index, means[here], stddevs[here], np.asarray(mixture.weights)


def random_covariance(rng, *shape) -> np.ndarray:
    root = rng.normal(size=(*shape, shape[-1]))
    return root @ np.swapaxes(root, -1, -2) + 0.3 * np.eye(shape[-1])


class Evaluation(NamedTuple):
    mean: jax.Array
    variance: jax.Array
    stddev: jax.Array
    cdf: jax.Array
    log_prob: jax.Array
    crps: jax.Array
    interval: tuple[jax.Array, jax.Array]


@jax.jit
def evaluate(d, y) -> Evaluation:
    """All that is a function of y, and the moments; compiled once per class and shape."""
    return Evaluation(d.mean, d.variance, d.stddev, d.cdf(y), d.log_prob(y), d.crps(y), d.interval(0.8))


# Gaussian


def test_gaussian_equals_scipy(rng):
    d, y = make_gaussian(rng), 3.0 * rng.normal(size=(4, 2))
    exact = stats.norm(np.asarray(d.mean), np.sqrt(np.asarray(d.variance)))
    got = evaluate(d, y)
    assert_allclose(got.cdf, exact.cdf(y), rtol=1e-12)
    assert_allclose(got.log_prob, stats.norm.logpdf(y, exact.mean(), exact.std()), rtol=1e-12)
    assert_allclose(got.stddev, exact.std(), rtol=1e-15)
    assert_allclose(got.interval, exact.interval(0.8), rtol=1e-12, atol=1e-12)
    assert_allclose(got.crps, reference.normal_crps(y, exact.mean(), exact.std()), rtol=1e-12)
    assert_allclose(d.median, d.mean, rtol=1e-15)


def test_quantile_takes_a_leading_axis_of_probabilities(rng):
    d = make_gaussian(rng)
    p = PROBABILITIES[:, None, None]
    exact = stats.norm.ppf(p, np.asarray(d.mean), np.asarray(d.stddev))
    assert_allclose(d.quantile(p), exact, rtol=1e-10, atol=1e-10)


def test_gaussian_samples_and_crps_agree(rng, key):
    d = make_gaussian(rng)
    y = jnp.asarray(rng.normal(size=(4, 2)))
    draws = np.asarray(d.sample(key, 20_000))
    assert draws.shape == (20_000, 4, 2)
    assert np.all(np.abs(draws.mean(0) - d.mean) < 4 * d.stddev / 20_000**0.5)
    assert np.all(np.abs(draws.var(0) / d.variance - 1) < 4 * (2 / 20_000) ** 0.5)
    first, second = draws.reshape(2, 10_000, 4, 2)
    terms = np.abs(first - y) - 0.5 * np.abs(first - second)
    assert np.all(np.abs(terms.mean(0) - d.crps(y)) < 4 * terms.std(0) / 10_000**0.5)


def test_point_mass_is_a_step_without_nan():
    d = Gaussian(jnp.full((4, 2), 2.0), jnp.zeros((4, 2)))
    got = evaluate(d, np.array([[1.0, -7.0], [2.0, 2.0], [5.0, 2.5], [np.nan, 1.0]]))
    assert_array_equal(got.cdf, [[0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [np.nan, 0.0]])
    assert_array_equal(got.log_prob[:3], [[-np.inf, -np.inf], [np.inf, np.inf], [-np.inf, -np.inf]])
    assert_array_equal(got.crps, [[1.0, 9.0], [0.0, 0.0], [3.0, 0.5], [np.nan, 1.0]])
    assert_array_equal(got.interval, np.full((2, 4, 2), 2.0))
    assert_array_equal(d.quantile(np.array([0.0, 1.0])), np.full((4, 2), 2.0))


def test_scores_at_extreme_scales():
    scale = np.array([1e-140, 1e140])
    z = np.array([[0.0], [0.7], [-8.0], [3.0]]) * np.ones(2)
    d = Gaussian(jnp.zeros((4, 2)), jnp.asarray(np.broadcast_to(scale**2, (4, 2))))
    got = evaluate(d, z * scale)
    assert_allclose(got.cdf, stats.norm.cdf(z), rtol=1e-12)
    assert_allclose(got.log_prob, stats.norm.logpdf(z) - np.log(scale), rtol=1e-12)
    assert_allclose(got.crps / scale, reference.normal_crps(z, 0.0, 1.0), rtol=1e-12)
    far = evaluate(Gaussian(jnp.zeros((4, 2)), jnp.full((4, 2), 1e-300)), np.full((4, 2), 1e200))
    assert_allclose(far.crps, np.full((4, 2), 1e200), rtol=1e-12)


# Mixture


def test_mixture_equals_numerical_integration(rng):
    d, y = make_mixture(rng), rng.normal(size=(4, 2))
    got = evaluate(d, y)
    for index, *parts in entries(d):
        assert_allclose(got.cdf[index], reference.mixture_cdf(y[index], *parts), rtol=1e-12)
        assert_allclose(got.log_prob[index], np.log(reference.mixture_density(y[index], *parts)), rtol=1e-12)
        assert_allclose(got.crps[index], reference.mixture_crps(y[index], *parts), atol=1e-8)
        assert_allclose((got.mean[index], got.variance[index]), reference.mixture_moments(*parts), atol=1e-8)
        low, high = (reference.mixture_cdf(float(end[index]), *parts) for end in got.interval)
        assert_allclose((low, high), (0.1, 0.9), rtol=1e-12)


def test_mixture_crps_equals_a_published_value():
    """The example in the documentation of the package scoringrules, function crps_mixnorm."""
    mean, stddev = np.array([0.1, -0.3, 1.0]), np.array([0.4, 2.1, 0.7])
    everywhere = np.ones((1, 4, 2))
    components = Gaussian(
        jnp.asarray(mean[:, None, None] * everywhere), jnp.asarray(stddev[:, None, None] ** 2 * everywhere)
    )
    got = evaluate(Mixture(components, jnp.log(jnp.array([0.1, 0.2, 0.7]))), np.zeros((4, 2)))
    assert_allclose(got.crps, np.full((4, 2), 0.46806866729387275), rtol=1e-13)


@jax.jit
def cdf_of_quantile(d, p):
    return d.cdf(d.quantile(p))


@jax.jit
def quantile_of_cdf(d, y):
    return d.quantile(d.cdf(y))


def test_mixture_quantile_inverts_the_cdf(rng):
    d, p = make_mixture(rng), np.concatenate([PROBABILITIES, rng.uniform(size=30)])[:, None, None] * np.ones((4, 2))
    assert_allclose(cdf_of_quantile(d, p), p, rtol=1e-10)
    y = np.asarray(d.mean + 2.0 * d.stddev * rng.uniform(-1, 1, size=(4, 2)))
    assert_allclose(quantile_of_cdf(d, y), y, rtol=1e-9, atol=1e-9)


def test_mixture_quantile_with_far_and_unlike_components(rng):
    """Means up to 2e4 apart, standard deviations from 1e-3 to 1e3, p also where the cdf is flat."""
    means = jnp.array([-1e4, 0.0, 1e4])[:, None, None] + jnp.asarray(rng.normal(size=(3, 4, 2)))
    d = Mixture(Gaussian(means, jnp.asarray(10.0 ** rng.uniform(-6, 6, size=(3, 4, 2)))), jnp.zeros(3))
    p = np.concatenate([PROBABILITIES, [1 / 3, 2 / 3], rng.uniform(size=28)])[:, None, None] * np.ones((4, 2))
    assert_allclose(cdf_of_quantile(d, p), p, atol=1e-8)


def test_mixture_quantile_at_the_ends_and_at_jumps():
    """The first row has atoms at 1 and 3; the second an atom at 1 and a normal around 3."""
    d = Mixture(Gaussian(jnp.array([[[1.0], [1.0]], [[3.0], [3.0]]]), jnp.array([[[0.0], [0.0]], [[0.0], [1.0]]])))
    p = jnp.array([0.0, 0.2, 0.7, 0.9, 1.0])[:, None, None]
    roots = d.quantile(p)
    assert np.all(d.cdf(roots) >= p - 1e-12)
    atoms, half = roots[..., 0].T
    assert_allclose(atoms, [1.0, 1.0, 3.0, 3.0, 3.0], rtol=1e-14)
    assert_allclose(half, [-np.inf, 1.0, *stats.norm.ppf([0.4, 0.8], 3.0), np.inf], rtol=1e-12)


def test_equal_components_are_one_gaussian(rng):
    one, y = make_gaussian(rng), rng.normal(size=(4, 2))
    d = Mixture(jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), one), jnp.asarray(rng.normal(size=3)))
    for mixed, single in zip(evaluate(d, y), evaluate(one, y), strict=True):
        assert_allclose(mixed, single, rtol=1e-12, atol=1e-13)


def test_weights_need_no_normalisation_and_may_be_zero(rng):
    components, y = make_gaussian(rng, (3, 4, 2)), rng.normal(size=(4, 2))
    got = evaluate(Mixture(components, jnp.log(jnp.array([2.0, 6.0, 0.0]))), y)
    weights = np.array([0.25, 0.75])
    for index, means, stddevs, _ in entries(Mixture(components)):
        parts = means[:2], stddevs[:2], weights
        assert_allclose(got.cdf[index], reference.mixture_cdf(y[index], *parts), rtol=1e-12)
        assert_allclose(got.crps[index], reference.mixture_crps(y[index], *parts), atol=1e-8)
        assert_allclose(reference.mixture_cdf(float(got.interval[0][index]), *parts), 0.1, rtol=1e-12)
    assert_allclose(Mixture(components).mean, np.mean(components.mean, axis=0), rtol=1e-14)


def test_mixture_samples_follow_its_cdf(rng, key):
    """Each entry's draws pass a Kolmogorov-Smirnov test at the 4-sigma level, 6e-5."""
    d = make_mixture(rng)
    draws = d.sample(key, 5_000)
    assert draws.shape == (5_000, 4, 2)
    for uniform in np.asarray(d.cdf(draws)).reshape(5_000, -1).T:
        assert stats.kstest(uniform, "uniform").pvalue > 6e-5


# Joint Gaussians


@jax.jit
def joint_summary(d, y, key):
    return d.log_prob(y), d.marginal(), d.sample(key, 10_000)


def test_over_inputs(rng, key):
    mean, covariance, y = rng.normal(size=(4, 2)), random_covariance(rng, 2, 4), rng.normal(size=(4, 2))
    d = GaussianOverInputs(jnp.asarray(mean), jnp.asarray(covariance))
    log_prob, marginal, draws = joint_summary(d, y, key)
    wanted = [reference.normal_log_density(y[:, p], mean[:, p], covariance[p]) for p in range(2)]
    assert_allclose(log_prob, wanted, rtol=1e-10)
    assert_allclose(marginal.variance, np.einsum("pnn->np", covariance), rtol=1e-15)
    check_draws(draws, marginal, covariance, "snp,smp->pnm")


def test_over_outputs_with_a_batch_axis(rng, key):
    mean, covariance, y = rng.normal(size=(3, 4, 2)), random_covariance(rng, 3, 4, 2), rng.normal(size=(3, 4, 2))
    d = GaussianOverOutputs(jnp.asarray(mean), jnp.asarray(covariance))
    log_prob, marginal, draws = joint_summary(d, y, key)
    wanted = [reference.normal_log_density(y[i], mean[i], covariance[i]) for i in np.ndindex(3, 4)]
    assert_allclose(log_prob, np.reshape(wanted, (3, 4)), rtol=1e-10)
    assert_allclose(marginal.variance, np.einsum("inpp->inp", covariance), rtol=1e-15)
    check_draws(draws, marginal, covariance, "sinp,sinq->inpq")


def test_over_both(rng, key):
    mean, y = rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    covariance = random_covariance(rng, 8).reshape(4, 2, 4, 2)
    d = GaussianOverBoth(jnp.asarray(mean), jnp.asarray(covariance))
    log_prob, marginal, draws = joint_summary(d, y, key)
    wanted = reference.normal_log_density(y.ravel(), mean.ravel(), covariance.reshape(8, 8))
    assert_allclose(log_prob, wanted, rtol=1e-10)
    assert_allclose(marginal.variance, np.einsum("npnp->np", covariance), rtol=1e-15)
    check_draws(draws, marginal, covariance, "snp,smq->npmq")


def check_draws(draws, marginal: Gaussian, covariance, outer: str) -> None:
    num, centred = draws.shape[0], np.asarray(draws - marginal.mean)
    assert draws.shape == (num, *marginal.mean.shape)
    assert np.all(np.abs(centred.mean(0)) < 4 * marginal.stddev / num**0.5)
    error = (2.0 / num) ** 0.5 * float(jnp.max(marginal.variance))  # bounds the standard error of every entry
    assert_allclose(np.einsum(outer, centred, centred) / num, covariance, atol=4 * error)


# The contract, for every class


def every_distribution(rng, dtype: type = np.float64):
    mean = jnp.asarray(rng.normal(size=(4, 2)), dtype)
    yield make_gaussian(rng, (4, 2), dtype)
    yield make_mixture(rng, (3, 4, 2), dtype)
    yield GaussianOverInputs(mean, jnp.asarray(random_covariance(rng, 2, 4), dtype))
    yield GaussianOverOutputs(mean, jnp.asarray(random_covariance(rng, 4, 2), dtype))
    yield GaussianOverBoth(mean, jnp.asarray(random_covariance(rng, 8).reshape(4, 2, 4, 2), dtype))


def test_affine_changes_the_units(rng):
    shift, scale = jnp.array([3.0, -1.0]), jnp.array([2.0, 0.25])
    y = jnp.asarray(rng.normal(size=(4, 2)))
    per_output = jnp.log(scale)
    log_jacobian = {
        Gaussian: per_output,
        Mixture: per_output,
        GaussianOverInputs: 4 * per_output,
        GaussianOverOutputs: jnp.sum(per_output),
        GaussianOverBoth: 4 * jnp.sum(per_output),
    }

    @jax.jit
    def summary(d):
        image = d.affine(shift, scale)
        return image, image.mean, image.stddev, image.log_prob(shift + scale * y), d.mean, d.stddev, d.log_prob(y)

    for d in every_distribution(rng):
        image, image_mean, image_stddev, image_log_prob, mean, stddev, log_prob = summary(d)
        assert type(image) is type(d)
        assert_allclose(image_mean, shift + scale * mean, rtol=1e-13)
        assert_allclose(image_stddev, scale * stddev, rtol=1e-13)
        assert_allclose(image_log_prob, log_prob - log_jacobian[type(d)], rtol=1e-10)


def test_affine_commutes_with_intervals_and_crps(rng):
    shift, scale = np.array([3.0, -1.0]), np.array([2.0, 0.25])
    d, y = make_mixture(rng), rng.normal(size=(4, 2))
    got, image = evaluate(d, y), evaluate(d.affine(shift, scale), shift + scale * y)
    assert_allclose(image.interval, shift + scale * np.asarray(got.interval), rtol=1e-11)
    assert_allclose(image.crps, scale * got.crps, rtol=1e-11)
    assert_allclose(d.affine(1.0, 2.0).mean, 1.0 + 2.0 * got.mean, rtol=1e-13)


def everything(d, y, key):
    outputs = [d.mean, d.variance, d.stddev, d.log_prob(y), d.sample(key, 2), d.affine(1.0, 2.0).mean]
    if isinstance(d, Gaussian | Mixture):
        outputs += [d.cdf(y), d.crps(y), *d.interval(0.9)]
    return outputs


def test_float32_stays_float32(rng, key):
    y = jnp.zeros((4, 2), jnp.float32)
    for d in every_distribution(rng, np.float32):
        outputs = jax.eval_shape(everything, d, y, key)
        assert [output.dtype for output in outputs] == [jnp.float32] * len(outputs)


def test_float32_agrees_with_float64(rng):
    wide, y = make_mixture(rng), rng.normal(size=(4, 2))
    narrow = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), wide)
    for low, high in zip(evaluate(narrow, y.astype(np.float32)), evaluate(wide, y), strict=True):
        assert_allclose(low, high, rtol=2e-5, atol=2e-6)


def test_vmap_over_models_changes_nothing(rng):
    d, y = make_mixture(rng), rng.normal(size=(4, 2))
    pair = jax.tree.map(lambda leaf: jnp.stack([0.5 * leaf, leaf]), d)
    for alone, (_, together) in zip(
        jax.tree.leaves(evaluate(d, y)), jax.tree.leaves(jax.vmap(evaluate, (0, None))(pair, y)), strict=True
    ):
        assert_allclose(together, alone, rtol=1e-10, atol=1e-12)
    joint = GaussianOverBoth(d.mean, jnp.asarray(random_covariance(rng, 8).reshape(4, 2, 4, 2)))
    pair = jax.tree.map(lambda leaf: jnp.stack([0.5 * leaf, leaf]), joint)
    assert_allclose(jax.vmap(lambda d: d.log_prob(y))(pair)[1], joint.log_prob(y), rtol=1e-10)


def test_mixture_gradients_are_those_of_finite_differences(rng):
    y = jnp.asarray(rng.normal(size=(4, 2)))

    @jax.jit
    def loss(point):
        d, p = point
        return jnp.sum(d.cdf(y) + d.crps(y) + d.log_prob(y) + d.quantile(p) * jnp.arange(2.0))

    point = (make_mixture(rng), jnp.asarray(0.2))
    direction = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)), point)
    above, below = (jax.tree.map(lambda a, b, h=h: a + h * b, point, direction) for h in (1e-5, -1e-5))
    slopes = jax.tree.map(lambda g, step: jnp.sum(g * step), jax.grad(loss)(point), direction)
    assert_allclose(sum(jax.tree.leaves(slopes)), (loss(above) - loss(below)) / 2e-5, rtol=1e-6)


def programs(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records if "Finished XLA compilation" in record.getMessage()]


@pytest.mark.parametrize("components", [None, 5])
def test_quantiles_are_one_program(components, caplog):
    """A first prediction waits for the compiler: dozens of small programs are a second of it."""
    shape = (7, 3) if components is None else (components, 7, 3)
    gaussian = Gaussian(jnp.asarray(np.zeros(shape)), jnp.asarray(np.ones(shape)))
    distribution = gaussian if components is None else Mixture(gaussian)
    p = jnp.asarray(np.full((2, 1, 1), 0.25))
    with jax.log_compiles():
        distribution.quantile(p)
    assert len(programs(caplog)) == 1, programs(caplog)


def test_gradients_are_finite_at_zero_variance(rng):
    d, y = Gaussian(jnp.zeros((4, 2)), jnp.zeros((4, 2))), jnp.asarray(rng.normal(size=(4, 2))).at[0, 0].set(0.0)

    @jax.jit
    def gradients(d):
        return [jax.grad(lambda d, name=name: jnp.sum(getattr(d, name)(y)))(d) for name in ("cdf", "crps", "log_prob")]

    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradients(d)))


@pytest.mark.usefixtures("without_shape_hook")
def test_wrong_shapes_are_refused_in_words():
    zeros = jnp.zeros
    with pytest.raises(InputError, match="same shape"):
        Gaussian(zeros((3, 1)), zeros((3, 2)))
    with pytest.raises(InputError, match="S ≥ 1"):
        Mixture(Gaussian(zeros((3, 1)), zeros((3, 1))))
    with pytest.raises(InputError, match="one log weight per component"):
        Mixture(Gaussian(zeros((3, 4, 1)), zeros((3, 4, 1))), zeros(4))
    with pytest.raises(InputError, match=r"\[\*batch, P, N, N\] = \(2, 3, 3\)"):
        GaussianOverInputs(zeros((3, 2)), zeros((3, 2, 2)))
    with pytest.raises(InputError, match=r"\[\*batch, N, P, P\]"):
        GaussianOverOutputs(zeros((3, 2)), zeros((2, 3, 3)))
    with pytest.raises(InputError, match=r"\[\*batch, N, P, N, P\]"):
        GaussianOverBoth(zeros((3, 2)), zeros((6, 6)))


def test_probabilities_outside_the_unit_interval_are_refused(rng):
    with pytest.raises(InputError, match="between 0 and 1"):
        make_gaussian(rng).quantile(5.0)
    with pytest.raises(InputError, match="between 0 and 1"):
        make_mixture(rng).interval(1.5)


def test_affine_equals_the_rescaled_gaussian(rng):
    base = Gaussian(jnp.asarray(rng.normal(size=(4, 2))), jnp.asarray(rng.uniform(0.1, 2.0, size=(4, 2))))
    shift, scale = jnp.asarray([1.0, -3.0]), jnp.asarray([2.0, 0.1])
    lazy, direct = Affine(base, shift, scale), base.affine(shift, scale)
    y = jnp.asarray(rng.normal(size=(4, 2)))
    for name in ("mean", "variance", "stddev", "median"):
        np.testing.assert_allclose(getattr(lazy, name), getattr(direct, name), rtol=1e-12, atol=1e-14)
    for name in ("cdf", "log_prob", "crps"):
        np.testing.assert_allclose(getattr(lazy, name)(y), getattr(direct, name)(y), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(lazy.interval(0.9), direct.interval(0.9), rtol=1e-12)
    np.testing.assert_allclose(lazy.expected_difference(direct), direct.expected_difference(direct), rtol=1e-12)
    twice = lazy.affine(jnp.asarray([1.0, 1.0]), jnp.asarray([3.0, 3.0]))
    np.testing.assert_allclose(twice.mean, 1.0 + 3.0 * direct.mean, rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_affine_survives_extreme_units(unit):
    base = Gaussian(jnp.zeros((1, 1)), jnp.ones((1, 1)))
    far = Affine(base, jnp.asarray([unit]), jnp.asarray([unit]))
    np.testing.assert_allclose(far.stddev / unit, 1.0)
    np.testing.assert_allclose(far.log_prob(far.mean), base.log_prob(0.0) - np.log(unit))
    np.testing.assert_allclose(far.crps(far.mean) / unit, base.crps(jnp.zeros((1, 1))), rtol=1e-12)


def test_nan_is_never_hidden():
    assert np.isnan(Gaussian(jnp.zeros((1, 1)), jnp.full((1, 1), jnp.nan)).stddev).all()
