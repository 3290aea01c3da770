"""Rows that coincide: cases 1 to 6."""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from numpy.testing import assert_allclose
from reference import kernels as reference

import dgpax
from adversarial.support import (
    BOTH,
    ENGINE,
    ENGINES,
    INDUCING,
    NEW_X,
    ROWS,
    assert_finite,
    assert_finite_gradient,
    condition,
    model_for,
    noise_deviation,
    smooth,
    table,
    train,
    value,
)
from dgpax import Dataset
from dgpax.errors import DgpaxWarning
from dgpax.inference import Problem, as_method
from dgpax.kernels import Matern32
from dgpax.parameters import set_values
from dgpax.propagate import propagate

DISTINCT = 30


@pytest.mark.parametrize("inference", BOTH)
def test_case_01_identical_rows_give_the_mean_and_variance_of_y(inference):
    _, y = table()
    data = dgpax.dataset(np.tile([[0.3, -7.0]], (ROWS, 1)), y)
    if inference == "sparse":
        with pytest.warns(DgpaxWarning, match="8 inducing points were asked for, but the data has 1 distinct rows"):
            model = model_for(inference, data, train_points=False)
        assert value(model, "*.locations").shape == (1, 2)
    else:
        model = model_for(inference, data)
    with pytest.warns(DgpaxWarning, match="Constant columns have no influence: x0, x1"):
        fitted = dgpax.fit(model, data, inference, engine=ENGINE)
    prediction = dgpax.predict(fitted, data.x[:6])
    assert_allclose(prediction.mean, np.mean(y), atol=0.01 * float(np.std(y)))
    assert_allclose(prediction.variance, np.var(y), rtol=0.1)
    assert_finite(fitted, data)
    assert fitted.report.objective_end > fitted.report.objective_start


def half_duplicated(gap: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """40 rows of which 20 form pairs, `gap` apart, with equal y; and how often each of 30 distinct rows is there."""
    x, y = table()
    x[DISTINCT:], y[DISTINCT:] = x[: ROWS - DISTINCT] + gap, y[: ROWS - DISTINCT]
    return x, y, np.where(np.arange(DISTINCT) < ROWS - DISTINCT, 2.0, 1.0)


def weighted_prediction(inference: str, fitted, x, y, counts) -> np.ndarray:
    """The predictive mean from the distinct rows, the noise variance of each divided by its count.

    [Rasmussen & Williams 2006, eq. 2.23; Titsias 2009, eqs. 6 and 10] with a noise variance per row.
    """
    x_mean, x_scale, y_mean, y_scale = x.mean(0), x.std(0), y.mean(), y.std()
    rows, new = (x[:DISTINCT] - x_mean) / x_scale, (NEW_X - x_mean) / x_scale
    targets = (y[:DISTINCT] - y_mean) / y_scale
    kernel = partial(reference.rbf, lengthscale=value(fitted.model, "*.lengthscale"), variance=1.0)
    noise = value(fitted.model, "*.noise_variance") / counts
    if inference == "exact":
        weights = np.linalg.solve(reference.matrix(kernel, rows, rows) + np.diag(noise), targets)
        return y_mean + y_scale * reference.matrix(kernel, new, rows) @ weights
    z = value(fitted.model, "*.locations")
    K_mn = reference.matrix(kernel, z, rows)
    weights = np.linalg.solve(reference.matrix(kernel, z, z) + K_mn / noise @ K_mn.T, K_mn @ (targets / noise))
    return y_mean + y_scale * reference.matrix(kernel, new, z) @ weights


@pytest.mark.parametrize("inference", BOTH)
def test_case_02_duplicated_rows_are_a_weighted_fit(inference):
    x, y, counts = half_duplicated()
    data = dgpax.dataset(x, y)
    fitted = condition(inference, data)
    mean = np.asarray(dgpax.predict(fitted, NEW_X).mean)[:, 0]
    assert_allclose(mean, weighted_prediction(inference, fitted, x, y, counts), atol=1e-6)
    trained = train(inference, data)
    assert_finite(trained, data)
    assert_finite_gradient(inference, trained, data)


@pytest.mark.parametrize("inference", BOTH)
def test_case_03_conflicting_targets_at_the_same_rows_are_noise(inference):
    x, _ = table()
    x[ROWS // 2 :] = x[: ROWS // 2]
    errors = 0.5 * np.random.default_rng(2).normal(size=ROWS)
    y = smooth(x) + errors
    data = dgpax.dataset(x, y)
    fitted = train(inference, data)
    within_pairs = np.sqrt(np.mean((errors[: ROWS // 2] - errors[ROWS // 2 :]) ** 2) / 2.0)
    assert 0.7 < noise_deviation(fitted, y) / within_pairs < 1.4
    assert_finite(fitted, data)
    assert_finite_gradient(inference, fitted, data)


@pytest.mark.parametrize("inference", BOTH)
def test_case_04_rows_that_nearly_coincide(inference):
    x, y, counts = half_duplicated(gap=1e-12)
    data = dgpax.dataset(x, y)
    fitted = condition(inference, data)
    mean = np.asarray(dgpax.predict(fitted, NEW_X).mean)[:, 0]
    assert_allclose(mean, weighted_prediction(inference, fitted, x, y, counts), atol=1e-6)
    trained = train(inference, data)
    assert_finite(trained, data)
    assert_finite_gradient(inference, trained, data)
    for derivative in derivatives(as_method(inference), trained.model, trained.model.to_model_units(data)):
        assert np.all(np.isfinite(derivative))


@eqx.filter_jit
def derivatives(method, model, scaled: Dataset):
    """The gradient of the objective by all parameters and the first row, which has a near twin, and its change in a
    direction that moves all of them (a product with the Hessian)."""
    trainable = Problem(method, model, scaled).trainable()
    start, unravel = ravel_pytree((trainable, scaled.x[0]))

    def loss(point):
        trainable, row = unravel(point)
        return Problem(method, model, Dataset(scaled.x.at[0].set(row), scaled.y)).loss(trainable, jr.key(0))[0]

    return jax.jvp(jax.grad(loss), (start,), (jr.normal(jr.key(1), start.shape),))


@ENGINES
@pytest.mark.parametrize("gap", [0.0, 1e-9])
def test_case_05_coincident_inducing_points(gap, engine):
    data = dgpax.dataset(*table())
    model = model_for("sparse", data)
    locations = value(model, "*.locations")
    locations[INDUCING // 2 :] = locations[: INDUCING // 2] + gap
    fitted = dgpax.fit(set_values(model, {"*.locations": locations}), data, "sparse", engine=engine)
    assert 0.0 < fitted.report.largest_jitter < 1e-9
    assert_finite(fitted, data)
    assert_finite_gradient("sparse", fitted, data)


@ENGINES
def test_case_05_inducing_points_that_all_coincide(engine):
    data = dgpax.dataset(*table())
    model = set_values(model_for("sparse", data), {"*.locations": np.full((INDUCING, 2), 0.1)})
    fitted = dgpax.fit(model, data, "sparse", engine=engine)
    assert 0.0 < fitted.report.largest_jitter < 1e-9
    assert_finite(fitted, data)
    assert_finite_gradient("sparse", fitted, data)


@pytest.mark.parametrize("kernel", [None, Matern32(0.8)], ids=["rbf", "matern32"])
@pytest.mark.parametrize("inference", BOTH)
def test_case_06_derivatives_at_a_training_or_inducing_point(inference, kernel):
    """Finite, and the Hessian is what differences of the gradient say."""
    data = dgpax.dataset(*table())
    fitted = condition(inference, data, kernel)
    at = fitted.model.to_model_units(data).x[3]
    if inference == "sparse":
        at = value(fitted.model, "*.locations")[3]
    gradient, hessian = moment_derivatives(fitted.model.layers, fitted.posterior, at)
    assert np.all(np.isfinite(gradient)) and np.all(np.isfinite(hessian))
    for d, step in enumerate(1e-5 * np.eye(2)):
        ahead, _ = moment_derivatives(fitted.model.layers, fitted.posterior, at + step)
        behind, _ = moment_derivatives(fitted.model.layers, fitted.posterior, at - step)
        assert_allclose(hessian[:, d], (ahead - behind) / 2e-5, atol=1e-3 * np.max(np.abs(hessian)))


@eqx.filter_jit
def moment_derivatives(layers, posterior, x):
    """Gradient [2, D] and Hessian [2, D, D] of the mean and the variance of f at one point."""

    def moments(x):
        q = propagate(layers, posterior, x[None], posterior.begin(layers)).marginal()
        return jnp.stack([q.mean[0, 0], q.variance[0, 0]])

    def gradient_twice(x):
        gradient = jax.jacrev(moments)(x)
        return gradient, gradient

    hessian, gradient = jax.jacfwd(gradient_twice, has_aux=True)(x)
    return gradient, hessian
