"""Spectral densities against the kernels they belong to; draws of frequencies and of functions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special

import dgpax.kernels as dk
from dgpax.errors import MissingRuleError
from dgpax.parameters import cast

KINDS = (dk.RBF, dk.Matern12, dk.Matern32, dk.Matern52)
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@each_kind
def test_density_in_one_dimension_transforms_back_to_the_kernel(kind):
    """k(τ) = 1/π ∫₀^∞ S(ω) cos(ωτ) dω."""
    kernel = dk.Scaled(kind(0.7, 1.3), 2.0)
    density = jax.jit(lambda w: dk.spectral_density(kernel, w))
    for lag in (0.0, 0.4, 1.5):
        weight = {"weight": "cos", "wvar": lag} if lag else {}
        integral, _ = integrate.quad(lambda w: float(density(jnp.array([w]))), 0.0, np.inf, epsabs=1e-9, **weight)
        expected = kernel.cross(jnp.zeros((1, 1)), jnp.full((1, 1), lag))[0, 0]
        np.testing.assert_allclose(integral / np.pi, expected, atol=1e-7)


@each_kind
@pytest.mark.parametrize("D", [2, 3])
def test_density_in_more_dimensions_integrates_to_the_variance(kind, D):
    """(2π)⁻ᴰ ∫ S = k(0); with a length scale per column the change of variables ω_d → ω_d/ℓ_d makes it radial."""
    scales = np.linspace(0.5, 1.6, D)
    area = 2.0 * np.pi ** (D / 2) / special.gamma(D / 2)
    direction = np.ones(D) / np.sqrt(D)
    density = jax.jit(lambda w: dk.spectral_density(kind(scales, 1.3), w))

    def shell(radius):
        return area * radius ** (D - 1) * float(density(jnp.asarray(radius * direction / scales)))

    integral, _ = integrate.quad(shell, 0.0, np.inf, epsabs=1e-9, limit=200)
    np.testing.assert_allclose(integral / np.prod(scales) / (2.0 * np.pi) ** D, 1.3, rtol=1e-7)


@each_kind
def test_densities_take_batches_and_keep_float32(kind, rng):
    frequencies = rng.normal(size=(2, 5, 3))
    kernel = kind([0.5, 1.0, 2.0], 1.3)
    density = jax.jit(dk.spectral_density)
    batch = density(kernel, jnp.asarray(frequencies))
    single = [[density(kernel, jnp.asarray(w)) for w in row] for row in frequencies]
    np.testing.assert_allclose(batch, single, rtol=1e-13)
    low = density(cast(kernel, jnp.float32), jnp.asarray(frequencies, jnp.float32))
    assert low.dtype == jnp.float32
    np.testing.assert_allclose(low, batch, rtol=2e-5)


SCALES = np.array([0.7, 1.4])
SAMPLED = {kind.__name__: kind(SCALES, 1.3) for kind in KINDS} | {
    "RationalQuadratic": dk.RationalQuadratic(SCALES, 1.3, 0.8),
    "Cosine": dk.Cosine(SCALES, 1.3),
    "Scaled": 2.5 * dk.Matern32(SCALES, 1.3),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_mean_cosine_over_drawn_frequencies_is_the_correlation(name, key):
    """10⁵ draws, within 4 standard errors (wrong in 1 of 16,000 checks)."""
    kernel, num_draws = SAMPLED[name], 100_000
    frequencies = np.asarray(dk.sample_frequencies(kernel, key, num_draws, 2))
    assert frequencies.shape == (num_draws, 2)
    lags = np.array([[0.3, 0.0], [0.5, -0.8], [1.5, 1.0]])
    expected = np.asarray(kernel(jnp.zeros((1, 2)), jnp.asarray(lags)))[0] / float(kernel.diag(jnp.zeros((1, 2)))[0])
    phases = frequencies @ lags.T
    for found, wanted in ((np.cos(phases), expected), (np.sin(phases), np.zeros(3))):
        error = found.std(axis=0) / np.sqrt(num_draws)
        assert np.all(np.abs(found.mean(axis=0) - wanted) <= 4.0 * error + 1e-12)


@pytest.mark.parametrize("name", SAMPLED)
def test_drawn_frequencies_keep_float32(name, key):
    kernel = cast(SAMPLED[name], jnp.float32)
    drawn = jax.eval_shape(lambda key: dk.sample_frequencies(kernel, key, 50, 2), key)
    assert drawn.dtype == jnp.float32


def test_a_kernel_without_a_rule_names_those_that_have_one(key):
    with pytest.raises(MissingRuleError, match=r"Linear has no spectral density.*Matern12, Matern32, Matern52, RBF"):
        dk.spectral_density(dk.Linear(), jnp.zeros((1,)))
    with pytest.raises(MissingRuleError, match=r"Periodic has no sample frequencies.*Cosine.*RationalQuadratic"):
        dk.sample_frequencies(dk.Periodic(), key, 10, 1)


def test_covariance_of_prior_draws(key, rng):
    """20,000 draws of two kernels at once; covariances within 4 standard errors."""
    kernel = dk.Matern32(0.8, jnp.array([1.3, 0.4])) + dk.White(0.1)
    x, num_samples = jnp.asarray(rng.normal(size=(4, 1))), 20_000
    draws = np.asarray(dk.sample_prior(kernel, x, key, num_samples))
    assert draws.shape == (num_samples, 2, 4)
    for p, K in enumerate(np.asarray(kernel(x))):
        products = np.einsum("si,sj->ij", draws[:, p], draws[:, p]) / num_samples
        variances = np.diag(K)
        assert np.all(np.abs(products - K) < 4.0 * np.sqrt((np.outer(variances, variances) + K**2) / num_samples))
        assert np.all(np.abs(draws[:, p].mean(axis=0)) < 4.0 * np.sqrt(variances / num_samples))
    between = np.einsum("si,sj->ij", draws[:, 0], draws[:, 1]) / num_samples
    assert np.all(np.abs(between) < 4.0 * np.sqrt(1.4 * 0.5 / num_samples))
    low = cast(kernel, jnp.float32)
    assert jax.eval_shape(lambda x: dk.sample_prior(low, x, key, 2), x.astype(jnp.float32)).dtype == jnp.float32
