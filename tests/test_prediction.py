"""Predictions: units, mixtures behind inner layers, likelihoods, chunks, memory."""

from __future__ import annotations

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import dgpax
from dgpax import DeepGP, GPLayer
from dgpax.distributions import Affine, Mixture
from dgpax.errors import InputError
from dgpax.inducing import Points
from dgpax.inference import LBFGS, NaturalGradient
from dgpax.kernels import RBF
from dgpax.likelihoods import BernoulliProbit, GaussianNoise, RobustMax
from dgpax.means import Identity
from dgpax.prediction import _rows, class_probabilities, log_density, predict_moments
from dgpax.propagate import draw_noise, propagate

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(30, 1))
    return dgpax.dataset(100 + 5 * x, 1000 + 50 * (np.sin(3 * x) + 0.1 * rng.normal(size=x.shape)))


@pytest.fixture(scope="module")
def fitted(data):
    return dgpax.fit(dgpax.gp_regression(data), data, engine=LBFGS(max_steps=60))


@pytest.fixture(scope="module")
def deep(data):
    """Two layers; a few steps suffice, as these tests don't ask for a good fit."""
    z = jnp.linspace(-1.5, 1.5, 6)[:, None]
    layers = [GPLayer(RBF(0.8), mean=Identity(), inducing=Points(z)), GPLayer(RBF(0.8), inducing=Points(z))]
    model = DeepGP(layers, GaussianNoise(0.1), dgpax.data.standardise(data))
    return dgpax.fit(model, data, "variational", engine=NaturalGradient(max_steps=100, ramp_steps=20))


def test_predictions_are_in_raw_units(fitted, data):
    prediction, latent = dgpax.predict(fitted, data.x), dgpax.predict_latent(fitted, data.x)
    assert np.sqrt(np.mean((np.asarray(prediction.mean) - np.asarray(data.y)) ** 2)) < 10
    noise = np.asarray(prediction.variance) - np.asarray(latent.variance)
    scale = float(fitted.model.scaling.y_scale[0])
    np.testing.assert_allclose(noise, scale**2 * float(fitted.model.likelihood.noise_variance.value), rtol=1e-6)
    joint = dgpax.predict_jointly(fitted, data.x)
    np.testing.assert_allclose(joint.variance, latent.variance, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(log_density(fitted, data), prediction.log_prob(data.y)[:, 0], rtol=1e-8)
    moments = predict_moments(fitted, data.x)
    np.testing.assert_allclose(moments.mean, prediction.mean, rtol=1e-12)
    np.testing.assert_allclose(moments.variance, prediction.variance, rtol=1e-12)


def test_chunks_change_nothing(fitted, deep, data, monkeypatch):
    whole = [dgpax.predict(each, data.x, num_samples=3).mean for each in (fitted, deep)]
    monkeypatch.setattr(_rows, "SIZES", (4, 8))
    monkeypatch.setattr(_rows, "SAMPLE_ROWS", 24)
    for each, mean in zip((fitted, deep), whole, strict=True):
        np.testing.assert_allclose(dgpax.predict(each, data.x, num_samples=3).mean, mean, rtol=1e-10)


def test_a_row_is_predicted_as_if_it_were_alone(deep, data):
    prediction, order = dgpax.predict(deep, data.x), np.arange(30)[::-1]
    for rows in (order, [4]):
        part = dgpax.predict(deep, np.asarray(data.x)[rows])
        np.testing.assert_allclose(part.mean, np.asarray(prediction.mean)[rows], rtol=1e-10)
        np.testing.assert_allclose(part.quantile(0.1), np.asarray(prediction.quantile(0.1))[rows], rtol=1e-8)
    other = dgpax.predict(deep, data.x, seed=1)
    assert float(jnp.max(jnp.abs(other.mean - prediction.mean))) > 0


def test_a_joint_prediction_that_is_too_large_is_refused_before_it_is_made(fitted):
    with pytest.raises(MemoryError, match="GiB"):
        dgpax.predict_jointly(fitted, np.zeros((200_000, 1)))


def test_behind_inner_layers_it_is_a_mixture(deep, data):
    prediction = dgpax.predict(deep, data.x, num_samples=50, seed=1)
    assert isinstance(prediction, Affine)
    components = prediction.base
    assert isinstance(components, Mixture)
    q = components.components
    total = np.mean(q.variance, axis=0) + np.var(q.mean, axis=0)
    scale = float(deep.model.scaling.y_scale[0])
    np.testing.assert_allclose(prediction.variance, scale**2 * total, rtol=1e-9)
    np.testing.assert_allclose(prediction.cdf(prediction.quantile(0.3)), 0.3, atol=1e-8)
    by_rows = jnp.log(jnp.mean(jnp.exp(q.log_prob(deep.model.to_model_units(data).y)), axis=0)) - np.log(scale)
    np.testing.assert_allclose(log_density(deep, data, num_samples=50, seed=1), by_rows[:, 0], rtol=1e-8)
    moments = predict_moments(deep, data.x, num_samples=50, seed=1)
    np.testing.assert_allclose(moments.variance, prediction.variance, rtol=1e-9)
    joint = dgpax.predict_jointly(deep, data.x, num_samples=50, seed=1)
    latent = dgpax.predict_latent(deep, data.x, num_samples=50, seed=1)
    np.testing.assert_allclose(joint.mean, latent.mean, atol=0.02 * scale)
    np.testing.assert_allclose(joint.variance, latent.variance, atol=0.02 * scale**2)


def test_an_inner_layer_without_variance_changes_nothing(data):
    """Inner variance to zero with an identity mean: the deep model is the shallow one."""
    z = jnp.linspace(-1.5, 1.5, 5)[:, None]
    inner = GPLayer(RBF(1.0, dgpax.parameters.Positive(1e-12, floor=0.0)), mean=Identity(), inducing=Points(z))
    last = GPLayer(RBF(0.7), inducing=Points(z))
    q = dgpax.posteriors.MeanField.at_prior((inner, last))
    shallow = dgpax.posteriors.MeanField(q.blocks[1:])
    x = dgpax.data.standardise(data).inputs(data.x)
    a = propagate(
        (inner, last), q, x, q.begin((inner, last)), draw_noise((inner, last), jr.key(0), 1, len(x), x.dtype)
    ).marginal()
    b = propagate((last,), shallow, x, shallow.begin((last,))).marginal()
    np.testing.assert_allclose(a.mean[0], b.mean, atol=1e-6)
    np.testing.assert_allclose(a.variance[0], b.variance, atol=1e-6)


@pytest.mark.parametrize("likelihood", [BernoulliProbit(), RobustMax(2)], ids=["binary", "multiclass"])
def test_classification(likelihood):
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, size=(60, 1))
    y = (x[:, 0] > 0.3).astype(float)
    data = dgpax.dataset(x, y)
    layer = GPLayer(RBF(0.8), likelihood.num_latents(1), inducing=Points(jnp.linspace(-2, 2, 8)[:, None]))
    model = DeepGP(layer, likelihood)
    fitted = dgpax.fit(model, data, "variational", engine=NaturalGradient(natural_rate=0.3, max_steps=150))
    probabilities = class_probabilities(fitted, x)
    assert probabilities.shape == (60, 2)
    np.testing.assert_allclose(jnp.sum(probabilities, axis=-1), 1.0, atol=1e-9)
    assert np.mean(np.argmax(probabilities, axis=1) == y) > 0.95
    with pytest.raises(InputError, match="class_probabilities"):
        dgpax.predict(fitted, x)


def test_class_probabilities_are_for_classes(fitted, data):
    with pytest.raises(InputError, match="classification"):
        class_probabilities(fitted, data.x)
