"""The ready deep models: starting values, errors, and whether depth pays."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import dgpax
from dgpax import DeepGP, GPLayer
from dgpax.data import InMemory
from dgpax.errors import DgpaxWarning, InputError
from dgpax.inducing import Points
from dgpax.inference import NaturalGradient, Variational
from dgpax.kernels import RBF, Sum, White
from dgpax.layers import Append, LatentVariables
from dgpax.likelihoods import BernoulliProbit, GaussianNoise, Poisson
from dgpax.means import Identity, Linear, Zero
from dgpax.prediction import log_density


def _data(rows=40, columns=3, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns))
    return dgpax.dataset(x, np.sin(x[:, :1]) + 0.1 * rng.normal(size=(rows, outputs)))


def test_the_model_of_the_paper_has_the_values_of_its_appendix():
    model = dgpax.dsvi(_data(columns=33), 3, 10)
    assert [layer.num_outputs for layer in model.layers] == [30, 30, 1]
    assert [type(layer.mean) for layer in model.layers] == [Linear, Identity, Zero]
    values = {name: parameter.value for name, parameter in dgpax.parameters.find(model).items()}
    assert float(values["likelihood.noise_variance"]) == pytest.approx(0.01)
    for index, width in enumerate((33, 30, 30)):
        kernel = model.layers[index].kernel
        smooth = kernel.kernels[0] if isinstance(kernel, Sum) else kernel
        assert isinstance(smooth, RBF)
        np.testing.assert_allclose(smooth.lengthscale.value, np.full(width, 2.0))
        assert float(smooth.variance.value) == pytest.approx(2.0)
        assert isinstance(kernel, Sum) == (index < 2)
    white = model.layers[0].kernel.kernels[1]
    assert isinstance(white, White) and float(white.variance.value) == pytest.approx(1e-5)
    first, second = (layer.inducing.locations.value for layer in model.layers[:2])
    np.testing.assert_allclose(model.layers[0].mean(first), second, atol=1e-12)


@pytest.mark.slow
def test_options_of_the_default_model():
    model = dgpax.deep_gp(_data(), 2, 8, width=2, append_inputs=True, num_latents=1)
    kinds = [type(layer) for layer in model.layers]
    assert kinds == [LatentVariables, GPLayer, Append, GPLayer]
    assert model.layers[1].inducing.locations.shape == (8, 4) and model.layers[3].inducing.locations.shape == (8, 5)
    fitted = dgpax.fit(model, _data(), "variational", engine=NaturalGradient(max_steps=3), progress=False)
    assert np.isfinite(fitted.report.objective_end)


@pytest.mark.slow
def test_latent_variables_by_an_encoder():
    data = _data()
    model = dgpax.deep_gp(data, 1, 8, num_latents=1)
    engine = NaturalGradient(max_steps=60)
    fitted = dgpax.fit(model, InMemory(data, 20), Variational(latents="encoder"), engine=engine, progress=False)
    assert fitted.report.history[-10:].mean() > fitted.report.history[:10].mean()
    assert np.all(np.isfinite(log_density(fitted, data)))


def test_bad_input_is_named():
    data = _data()
    with pytest.raises(InputError, match="width >= 1; got 0"):
        dgpax.deep_gp(data, width=0)
    with pytest.raises(InputError, match="num_layers >= 1"):
        dgpax.deep_gp(data, 0)
    with pytest.raises(InputError):
        dgpax.deep_gp(data, likelihood=BernoulliProbit())
    with pytest.raises(InputError):
        dgpax.dsvi(data, likelihood=Poisson())
    with pytest.raises(InputError, match="can't be the last layer"):
        dgpax.fit(DeepGP((GPLayer(RBF()), Append()), GaussianNoise()), data, "variational", progress=False)
    with pytest.warns(DgpaxWarning, match="40 distinct rows"):
        dgpax.deep_gp(data, num_inducing=50)


@pytest.mark.slow
def test_missing_outputs_are_left_out():
    data = _data(outputs=2)
    y = np.array(data.y)
    y[::3, 0] = np.nan
    with_missing = dgpax.dataset(data.x, y, missing="keep_outputs")
    model = dgpax.deep_gp(with_missing, 2, 6)
    fitted = dgpax.fit(model, with_missing, "variational", engine=NaturalGradient(max_steps=3), progress=False)
    assert np.isfinite(fitted.report.objective_end) and fitted.report.rejected_steps == 0


@pytest.mark.slow
def test_a_jump_is_fitted_by_the_defaults():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(200, 1))
    data = dgpax.dataset(x, (x > 0) + 0.02 * rng.normal(size=x.shape))
    deep = dgpax.fit(dgpax.deep_gp(data), data, "variational", progress=False)
    at = np.linspace(-1, 1, 200)[:, None]
    away = np.abs(at[:, 0]) > 0.05
    error = np.asarray(dgpax.predict(deep, at).mean - (at > 0))[away]
    assert np.sqrt(np.mean(error**2)) < 0.01
    report = dgpax.compare_with_one_layer(deep, data)
    assert report.depth_pays and "Depth pays" in str(report)


@pytest.mark.slow
def test_depth_does_not_pay_on_a_straight_line():
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, size=(60, 1))
    data = dgpax.dataset(x, x + 0.1 * rng.normal(size=x.shape))
    deep = dgpax.fit(
        dgpax.deep_gp(data, 2, 10), data, "variational", engine=NaturalGradient(max_steps=300), progress=False
    )
    report = dgpax.compare_with_one_layer(deep, data)
    assert not report.depth_pays and "one layer" in str(report)


@pytest.mark.slow
def test_natural_gradients_survive_curvature_of_the_wrong_sign():
    """An inner layer in one dimension, with many points: without a trust region the bound fell below -1e20."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(100, 1))
    data = dgpax.dataset(x, (x > 0) + 0.02 * rng.normal(size=x.shape))
    fitted = dgpax.fit(dgpax.deep_gp(data, 3, 60), data, "variational", progress=False)
    assert np.min(fitted.report.history) > -1e6
    assert np.mean(fitted.report.history[-100:]) > 0


@pytest.mark.slow
def test_locations_stay_finite_in_float32():
    data = _data()
    single = dgpax.dataset(np.asarray(data.x, np.float32), np.asarray(data.y, np.float32))
    fitted = dgpax.fit(
        dgpax.deep_gp(single, 2, 6), single, "variational", engine=NaturalGradient(max_steps=5), progress=False
    )
    assert fitted.report.rejected_steps == 0
    assert fitted.model.layers[0].inducing.locations.value.dtype == jnp.float32
    assert isinstance(fitted.model.layers[0].inducing, Points)


def test_more_columns_than_rows_span():
    x = np.random.default_rng(0).normal(size=(20, 40))
    model = dgpax.deep_gp(dgpax.dataset(x, x[:, 0]), 2, 8)
    assert model.layers[0].num_outputs == 19


def test_heavy_tails_in_any_units():
    """Only the scaling differs: by the start of a fit, targets far from 0 are as well explained as those around it."""
    x = np.random.default_rng(0).uniform(-1, 1, (20, 1))
    likelihood = dgpax.likelihoods.StudentT()
    near, far = (dgpax.dataset(x, shift + scale * x) for shift, scale in ((0.0, 1.0), (1e6, 500.0)))
    models = [dgpax.deep_gp(data, 2, 5, likelihood=likelihood) for data in (near, far)]
    scaled = [model.to_model_units(data).y for model, data in zip(models, (near, far), strict=True)]
    np.testing.assert_allclose(scaled[0], scaled[1], atol=1e-6)
