"""Gaussian-windowed inducing variables against quadrature and their limit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import interdomain as reference

from dgpax import DeepGP, GPLayer
from dgpax.covariances import Kuf, Kuu
from dgpax.data import Dataset
from dgpax.errors import InputError, MissingRuleError
from dgpax.inducing import Multiscale, Points
from dgpax.kernels import RBF, Matern32
from dgpax.likelihoods import GaussianNoise
from dgpax.objectives import collapsed_bound
from dgpax.parameters import cast, fixed

pytestmark = pytest.mark.slow

LENGTHSCALES, VARIANCE = np.array([0.7, 1.3]), 1.8
KERNEL = RBF(LENGTHSCALES, VARIANCE)


def test_entries_agree_with_quadrature(rng):
    z, w, x = rng.normal(size=(3, 2)), rng.uniform(0.2, 0.8, size=(3, 2)), rng.normal(size=(4, 2))
    inducing = Multiscale(z, w)
    windows = [reference.gaussian(*row) for row in zip(z, w, strict=True)]

    def matrix(a, b):
        return reference.rbf_matrix(a, b, LENGTHSCALES, VARIANCE)

    expected = reference.covariances(matrix, windows, windows)
    np.testing.assert_allclose(Kuu(inducing, KERNEL).to_dense()[0], expected, rtol=1e-8)
    expected = reference.covariances(matrix, windows, [reference.value(row) for row in x])
    np.testing.assert_allclose(Kuf(inducing, KERNEL, jnp.asarray(x)[None])[0], expected, rtol=1e-8)


@pytest.mark.parametrize("width, tolerance", [(0.0, 1e-14), (1e-5, 1e-8)])
def test_without_width_they_are_points(width, tolerance, rng):
    z, x = rng.normal(size=(3, 2)), jnp.asarray(rng.normal(size=(4, 2)))
    narrow, points = Multiscale(z, fixed(np.full_like(z, width))), Points(z)
    np.testing.assert_allclose(
        Kuu(narrow, KERNEL).to_dense(), Kuu(points, KERNEL).to_dense(), rtol=tolerance, atol=tolerance
    )
    np.testing.assert_allclose(
        Kuf(narrow, KERNEL, x[None]), Kuf(points, KERNEL, x[None]), rtol=tolerance, atol=tolerance
    )


def test_gpflow_has_the_same_windows_with_another_parameter(rng):
    """GPflow 2.11: variance · Π ℓ/(ℓ + s) exp(−½ ((x − z)/(ℓ + s))²), here written out."""
    z, s, x = rng.normal(size=(3, 2)), rng.uniform(0.2, 0.8, size=(3, 2)), rng.normal(size=(4, 2))
    total = LENGTHSCALES + s
    scaled = (x[None] - z[:, None]) / total[:, None]
    expected = VARIANCE * np.prod(LENGTHSCALES / total, axis=1)[:, None] * np.exp(-0.5 * np.sum(scaled**2, axis=-1))
    inducing = Multiscale(z, np.sqrt(total**2 - LENGTHSCALES**2))
    np.testing.assert_allclose(Kuf(inducing, KERNEL, jnp.asarray(x)[None])[0], expected, rtol=1e-12)


def test_several_kernels_and_locations_in_one_call_equal_single_calls(rng):
    z, w, x = rng.normal(size=(2, 3, 2)), rng.uniform(0.2, 0.8, size=(2, 3, 2)), rng.normal(size=(5, 1, 4, 2))
    scales, variances = rng.uniform(0.5, 1.5, size=(2, 2)), np.array([1.0, 2.0])
    together = Kuf(Multiscale(z, w), RBF(scales, variances), jnp.asarray(x))
    uu = Kuu(Multiscale(z, w), RBF(scales, variances)).to_dense()
    assert together.shape == (5, 2, 3, 4) and uu.shape == (2, 3, 3)
    for p in range(2):
        single, kernel = Multiscale(z[p], w[p]), RBF(scales[p], variances[p])
        np.testing.assert_allclose(together[:, p], Kuf(single, kernel, jnp.asarray(x))[:, 0], rtol=1e-13)
        np.testing.assert_allclose(uu[p], Kuu(single, kernel).to_dense()[0], rtol=1e-13)


def test_they_train_like_any_inducing_variable_and_stay_float32(rng):
    x = rng.uniform(-2, 2, size=(20, 1))
    data = Dataset(jnp.asarray(x, jnp.float32), jnp.asarray(np.sin(x), jnp.float32))

    def bound(z, w):
        model = DeepGP(GPLayer(RBF(), inducing=Multiscale(z, w)), GaussianNoise(0.1))
        return collapsed_bound(cast(model, jnp.float32), data).total

    z, w = jnp.linspace(-2, 2, 4, dtype=jnp.float32)[:, None], jnp.full((4, 1), 0.5, jnp.float32)
    value, slopes = jax.jit(jax.value_and_grad(bound, argnums=(0, 1)))(z, w)
    assert value.dtype == jnp.float32
    assert all(bool(jnp.all(jnp.isfinite(slope))) and float(jnp.max(jnp.abs(slope))) > 1e-3 for slope in slopes)


def test_bad_windows_are_refused(rng):
    z = rng.normal(size=(3, 2))
    with pytest.raises(InputError, match="positive"):
        Multiscale(z, np.full((3, 2), -0.1))
    with pytest.raises(InputError, match="standard deviations"):
        Multiscale(z, fixed(np.full((3, 2), -0.1)))
    with pytest.raises(InputError, match="full_like"):
        Multiscale(z, np.ones(3))
    with pytest.raises(MissingRuleError, match="Multiscale, RBF"):
        Kuu(Multiscale(z, np.ones((3, 2))), Matern32())
