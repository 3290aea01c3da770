"""Draws of functions and of layers have the moments of the predictions."""

from __future__ import annotations

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from saved_models import FITS

import dgpax
from dgpax import DeepGP, GPLayer
from dgpax.errors import InputError
from dgpax.inducing import Fourier, Points
from dgpax.inference import Variational
from dgpax.kernels import LMC, RBF, Matern52, White
from dgpax.likelihoods import GaussianNoise
from dgpax.means import Identity
from dgpax.posteriors import GaussianBlock, MeanField
from dgpax.prediction import draw_functions, predict_layers, sample_jointly

M = 8


def _fit(layers, blocks):
    x = np.linspace(-1, 1, 12)[:, None]
    outputs = layers[-1].num_outputs
    data = dgpax.dataset(x, np.tile(np.sin(3 * x), (1, outputs)))
    model = dgpax.freeze(DeepGP(layers, GaussianNoise(0.1)))
    posterior = dgpax.freeze(MeanField(blocks))
    return dgpax.fit(model, data, Variational(posterior), progress=False)


def _block(seed, outputs=1, scale=0.3):
    key_mean, key_root = jr.split(jr.key(seed))
    root = scale * (jnp.tril(0.2 * jr.normal(key_root, (outputs, M, M))) + jnp.eye(M))
    return GaussianBlock(jr.normal(key_mean, (outputs, M)), root)


Z = np.linspace(-1, 1, M)[:, None]


@pytest.fixture(scope="module")
def deep():
    inner = GPLayer(RBF(0.6, 0.5) + White(1e-5), 1, Identity(), Points(Z))
    return _fit((inner, GPLayer(Matern52(0.9), inducing=Points(Z))), (_block(1), _block(2)))


@pytest.mark.slow
def test_functions_have_the_moments_of_the_prediction(deep):
    x = np.linspace(-1.2, 1.2, 7)[:, None]
    values = np.asarray(draw_functions(deep, 4000, num_features=2000)(x))[..., 0]
    q = dgpax.predict_latent(deep, x, num_samples=4000)
    mean, stddev = np.asarray(q.mean)[:, 0], np.sqrt(np.asarray(q.variance))[:, 0]
    np.testing.assert_allclose(values.mean(0), mean, atol=6 * stddev.max() / np.sqrt(4000))
    np.testing.assert_allclose(values.std(0), stddev, rtol=0.08)


@pytest.mark.slow
def test_a_function_stays_the_same(deep):
    draws = draw_functions(deep, 3)
    x = np.linspace(-1, 1, 5)[:, None]
    np.testing.assert_allclose(draws(x[2:4]), draws(x)[:, 2:4], atol=1e-10)
    assert draws(x).shape == (3, 5, 1)


def test_functions_of_an_exact_posterior():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(15, 1))
    data = dgpax.dataset(x, np.sin(2 * x) + 0.1 * rng.normal(size=x.shape))
    fitted = dgpax.fit(dgpax.freeze(dgpax.gp_regression(data)), data, "exact", progress=False)
    at = np.linspace(-2, 2, 6)[:, None]
    values = np.asarray(draw_functions(fitted, 4000, num_features=2000)(at))[..., 0]
    q = dgpax.predict_latent(fitted, at)
    np.testing.assert_allclose(values.mean(0), q.mean[:, 0], atol=6 * float(jnp.max(q.stddev)) / np.sqrt(4000))
    np.testing.assert_allclose(values.std(0), q.stddev[:, 0], rtol=0.08)


@pytest.mark.slow
def test_mixed_functions():
    W = jnp.array([[1.0], [-2.0]])
    fitted = _fit((GPLayer(LMC(RBF(0.5), W), 2, inducing=Points(Z)),), (_block(3),))
    values = draw_functions(fitted, 2)(np.linspace(-1, 1, 4)[:, None])
    np.testing.assert_allclose(values[..., 1], -2 * values[..., 0], rtol=1e-10)


@pytest.mark.slow
def test_joint_samples_have_the_moments_of_the_prediction(deep):
    x = np.linspace(-1, 1, 5)[:, None]
    values = np.asarray(sample_jointly(deep, x, num_samples=4000))[..., 0]
    q = dgpax.predict_latent(deep, x, num_samples=4000)
    np.testing.assert_allclose(
        values.mean(0), q.mean[:, 0], atol=6 * float(jnp.sqrt(jnp.max(q.variance))) / np.sqrt(4000)
    )
    np.testing.assert_allclose(values.std(0), np.sqrt(q.variance)[:, 0], rtol=0.08)
    near = np.asarray(sample_jointly(deep, np.array([[0.0], [1e-3]]), num_samples=50))[..., 0]
    assert np.max(np.abs(near[:, 0] - near[:, 1])) < 0.05


def test_layers(deep):
    x = np.linspace(-1, 1, 5)[:, None]
    first, last = predict_layers(deep, x, num_samples=200, seed=3)
    assert first.mean.shape == last.mean.shape == (5, 1)
    f = dgpax.predict_latent(deep, x, num_samples=200, seed=3)
    np.testing.assert_allclose(last.mean, f.mean, rtol=1e-10)


@pytest.mark.slow
def test_what_has_no_pathwise_draws_says_so():
    inducing = Fourier(-2.0, 2.0, num_frequencies=4)
    layer = GPLayer(Matern52(0.9), inducing=inducing)
    x = np.linspace(-1, 1, 12)[:, None]
    fitted = dgpax.fit(
        dgpax.freeze(DeepGP(layer, GaussianNoise(0.1))), dgpax.dataset(x, np.sin(x)), "sparse", progress=False
    )
    with pytest.raises(InputError, match="needs inducing points"):
        draw_functions(fitted)


def test_functions_pass_through_what_was_drawn_of_points_as_locations():
    """But for the nugget's noise, a thousandth of the prior's deviation."""
    fitted = FITS["draws of locations"]()
    carry = fitted.posterior.begin(fitted.model.layers)
    drawn = fitted.functions(5, seed=0, num_features=500)
    z, u = carry.points[0].locations[0], carry.points[1].locations[:, 0]
    np.testing.assert_allclose(drawn.functions[0](z), u, atol=0.01)
