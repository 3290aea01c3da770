"""Ensembles: predictions are exact mixtures of the members', in raw units."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from parts import fit_of
from saved_models import REPORT, same
from scipy import stats

import dgpax
from dgpax import DeepGP, Fit, GPLayer
from dgpax.data import standardise
from dgpax.distributions import Gaussian, JointMixture
from dgpax.errors import InputError
from dgpax.fits import Ensemble
from dgpax.inducing import Points
from dgpax.kernels import RBF
from dgpax.likelihoods import BernoulliProbit, GaussianNoise, Poisson
from dgpax.posteriors import ExactPosterior, MeanField
from dgpax.prediction import (
    class_probabilities,
    draw_functions,
    log_density,
    predict_moments,
    predict_quantiles,
    sample_functions,
    sample_jointly,
    sample_observations,
)

X = np.linspace(-1.0, 1.0, 9)[:, None]
DATA = dgpax.dataset(X, 500 + 20 * np.sin(3 * X))
OTHER = dgpax.dataset(0.5 * X, 480 + 35 * np.sin(X))
"""As many rows, in other units: both members run the same programs."""
NEW = dgpax.dataset([[-0.5], [0.1], [0.7]], [[490.0], [505.0], [530.0]])


def exact(lengthscale: float, noise: float, data: dgpax.Dataset) -> Fit:
    model = DeepGP(GPLayer(RBF(lengthscale)), GaussianNoise(noise), standardise(data))
    return fit_of(model, ExactPosterior.condition(model, model.to_model_units(data)), REPORT, 1)


@pytest.fixture(scope="module")
def members() -> tuple[Fit, Fit]:
    """Their scalings differ."""
    return exact(0.5, 0.1, DATA), exact(0.3, 0.02, OTHER)


@pytest.fixture(scope="module")
def deep() -> Fit:
    layers = [GPLayer(RBF(0.8), inducing=Points(X[::2])), GPLayer(RBF(1.0), inducing=Points(X[::2]))]
    model = DeepGP(layers, GaussianNoise(0.1), standardise(DATA))
    return fit_of(model, MeanField.at_prior(model.layers, inner_scale=0.3), REPORT, 1)


def test_a_member_with_all_weight_is_the_ensemble(members):
    for weights, own in (([1.0, 0.0], members[0]), ([0.0, 2.0], members[1])):
        both = Ensemble(members, weights)
        prediction: Any = dgpax.predict(both, NEW.x)
        assert isinstance(prediction.base, Gaussian)
        for ask in (dgpax.predict, dgpax.predict_latent, dgpax.predict_jointly, predict_moments):
            assert_array_equal(ask(both, NEW.x).mean, ask(own, NEW.x).mean)
            assert_array_equal(ask(both, NEW.x).variance, ask(own, NEW.x).variance)
        assert_array_equal(log_density(both, NEW), log_density(own, NEW))
        assert_array_equal(predict_quantiles(both, NEW.x, [0.1, 0.9]), predict_quantiles(own, NEW.x, [0.1, 0.9]))
        for draw in (sample_observations, sample_jointly):
            assert draw(both, NEW.x, num_samples=4).shape == (4, 3, 1)
        assert both.model is own.model


def test_equal_members_are_one(members):
    both, own = Ensemble([members[0]] * 3, [1.0, 2.0, 3.0]), members[0]
    p, q = dgpax.predict(both, NEW.x), dgpax.predict(own, NEW.x)
    assert_allclose(p.mean, q.mean, rtol=1e-12)
    assert_allclose(p.variance, q.variance, rtol=1e-10)
    assert_allclose(p.quantile(0.2), q.quantile(0.2), rtol=1e-10)
    assert_allclose(log_density(both, NEW), log_density(own, NEW), rtol=1e-10)


def test_moments_density_and_quantiles_are_those_of_the_mixture_by_hand(members):
    both, w = Ensemble(members, [3.0, 1.0]), np.array([0.75, 0.25])[:, None, None]
    each = [dgpax.predict(member, NEW.x) for member in members]
    means, variances = (np.stack([np.asarray(getattr(q, name)) for q in each]) for name in ("mean", "variance"))
    mean = np.sum(w * means, axis=0)
    variance = np.sum(w * (variances + (means - mean) ** 2), axis=0)
    density = np.log(np.sum(w * stats.norm.pdf(np.asarray(NEW.y), means, np.sqrt(variances)), axis=0))
    for answer in (dgpax.predict(both, NEW.x), predict_moments(both, NEW.x)):
        assert_allclose(answer.mean, mean, rtol=1e-10)
        assert_allclose(answer.variance, variance, rtol=1e-10)
    assert_allclose(log_density(both, NEW), density[:, 0], rtol=1e-10)
    assert_allclose(dgpax.predict(both, NEW.x).log_prob(NEW.y), density, rtol=1e-10)
    quantiles = np.asarray(predict_quantiles(both, NEW.x, [0.05, 0.6]))
    cdf = np.sum(w * stats.norm.cdf(quantiles[:, None], means, np.sqrt(variances)), axis=1)
    assert_allclose(cdf, np.array([0.05, 0.6])[:, None, None] * np.ones((1, 3, 1)), atol=1e-8)
    joint = dgpax.predict_jointly(both, NEW.x)
    assert isinstance(joint, JointMixture)
    assert_allclose(joint.mean, mean, rtol=1e-10)
    single = [dgpax.predict_jointly(member, NEW.x).log_prob(NEW.y) for member in members]
    assert_allclose(joint.log_prob(NEW.y), np.log(0.75 * np.exp(single[0]) + 0.25 * np.exp(single[1])), rtol=1e-8)


def test_draws_come_from_the_members_in_proportion_and_by_the_seed(members):
    both = Ensemble(members, [0.3, 0.7])
    grid = NEW.x
    for draw in (sample_observations, sample_functions):
        drawn, again = draw(both, grid, num_samples=10), draw(both, grid, num_samples=10)
        assert_array_equal(drawn, again)
        assert_array_equal(drawn[:3], draw(members[0], grid, num_samples=3))
        assert_array_equal(drawn[3:], draw(members[1], grid, num_samples=7, seed=1))
    assert_allclose(sample_jointly(both, grid)[3:], sample_jointly(members[1], grid, num_samples=7, seed=1), rtol=1e-10)
    functions = draw_functions(both, 10)
    assert functions(grid).shape == (10, 3, 1)
    assert_array_equal(functions(grid)[:3], draw_functions(members[0], 3)(grid))
    many = np.asarray(sample_observations(both, grid, num_samples=20_000))
    p = dgpax.predict(both, grid)
    assert_allclose(many.mean(axis=0), p.mean, atol=4 * float(np.max(p.stddev)) / np.sqrt(10_000))
    assert_allclose(many.std(axis=0), p.stddev, rtol=0.05)


def test_members_of_different_depth(members, deep):
    both = Ensemble([members[0], deep], [0.5, 0.5])
    p, shallow, other = (dgpax.predict(fitted, NEW.x, num_samples=8) for fitted in (both, members[0], deep))
    assert_allclose(p.mean, 0.5 * (shallow.mean + other.mean), rtol=1e-10)
    joint: Any = dgpax.predict_jointly(both, NEW.x, num_samples=8)
    assert joint.components.mean.shape == (9, 3, 1)
    latent = both.latent(both.inputs(NEW.x), num_samples=8, seed=0)
    assert latent.mean.shape == (8, 3, 1)
    assert_allclose(
        jnp.mean(latent.mean[:4], axis=0), members[0].latent(both.inputs(NEW.x), num_samples=1, seed=0).mean
    )


def _latent_fit(likelihood, seed: int) -> Fit:
    layer = GPLayer(RBF(0.5 + seed), inducing=Points(X[::2]))
    posterior = MeanField.at_prior((layer,))
    return fit_of(DeepGP(layer, likelihood), posterior, REPORT, 1)


def test_likelihoods_without_gaussian_predictions():
    labels = [_latent_fit(BernoulliProbit(), seed) for seed in range(2)]
    each = [class_probabilities(fitted, X) for fitted in labels]
    assert_allclose(class_probabilities(Ensemble(labels, [1, 3]), X), 0.25 * each[0] + 0.75 * each[1], rtol=1e-10)
    counts = [_latent_fit(Poisson(), seed) for seed in range(2)]
    own, both = (predict_quantiles(fitted, X, [0.1, 0.5, 0.9]) for fitted in (counts[0], Ensemble([counts[0]] * 2)))
    assert_allclose(own, both, atol=0.3)
    with pytest.raises(InputError, match="Poisson"):
        dgpax.predict(Ensemble([_latent_fit(GaussianNoise(0.1), 0), counts[0]]), X)


def test_an_ensemble_in_a_file(members, deep, tmp_path):
    both = Ensemble([*members, Ensemble([deep])], [0.2, 0.3, 0.5])
    dgpax.save(both, tmp_path / "model")
    again = dgpax.load_model(tmp_path / "model")
    assert same(both, again)
    assert_array_equal(dgpax.predict(again, X).mean, dgpax.predict(both, X).mean)


def test_what_is_no_ensemble(members):
    with pytest.raises(InputError, match="at least one fit"):
        Ensemble([])
    with pytest.raises(InputError, match="weight for each"):
        Ensemble(members, [1.0])
    with pytest.raises(InputError, match="at least 0"):
        Ensemble(members, [1.0, -1.0])
