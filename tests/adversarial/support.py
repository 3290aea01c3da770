"""What the bad-input tests share: one size of data, one engine and one way to fit, so that programs compile once."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest

import dgpax
from dgpax import Dataset, DeepGP, Fit
from dgpax.inference import LBFGS, Problem, as_method
from dgpax.kernels import AbstractKernel
from dgpax.parameters import find
from dgpax.typing import PyTree

BOTH = ("exact", pytest.param("sparse", marks=pytest.mark.slow))
ROWS, INDUCING = 40, 8
ENGINE = LBFGS(max_steps=500, tolerance=1e-12, steps_per_call=10)
NO_STEPS = LBFGS(max_steps=0)
ENGINES = pytest.mark.parametrize(
    "engine", [NO_STEPS, pytest.param(ENGINE, marks=pytest.mark.slow)], ids=["as it starts", "trained"]
)
"""Training compiles one program more."""
NEW_X = np.random.default_rng(1).uniform(-2.0, 2.0, size=(6, 2))


def smooth(x: np.ndarray) -> np.ndarray:
    """A function that 40 rows are enough for."""
    return np.sin(2.0 * x[:, 0]) + 0.3 * x[:, -1]


def table(seed: int = 0, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Inputs [40, 2] and targets [40] that are as they should be; every test spoils them in its own way."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, size=(ROWS, 2))
    return x, smooth(x) + noise * rng.normal(size=ROWS)


def model_for(
    inference: str, data: Dataset, kernel: AbstractKernel | None = None, *, train_points: bool = True
) -> DeepGP:
    """The ready model of this kind of inference."""
    if inference == "exact":
        return dgpax.gp_regression(data, kernel)
    return dgpax.sparse_gp_regression(data, INDUCING, kernel, train_points=train_points)


def train(inference: str, data: Dataset, *, train_points: bool = True) -> Fit:
    """The ready model, trained; with inducing points that stay there is one program less to compile."""
    return dgpax.fit(model_for(inference, data, train_points=train_points), data, inference, engine=ENGINE)


def condition(inference: str, data: Dataset, kernel: AbstractKernel | None = None) -> Fit:
    """The ready model with its parameters as they start; no step is taken."""
    return dgpax.fit(model_for(inference, data, kernel), data, inference, engine=NO_STEPS)


def assert_finite(fitted: Fit, data: Dataset, x: np.ndarray = NEW_X) -> None:
    """Predictions and variances at some rows of the data and at new ones are finite, and no variance is negative."""
    for new in (np.asarray(data.x)[: len(x)], x):
        y, f = dgpax.predict(fitted, new), dgpax.predict_latent(fitted, new)
        for values in (y.mean, y.stddev, y.variance, f.mean, f.stddev, f.variance):
            assert np.all(np.isfinite(values))
        assert np.all(np.asarray(f.variance) >= 0.0)
        assert np.all(np.asarray(y.variance) > 0.0)


def assert_finite_gradient(inference: str, fitted: Fit, data: Dataset) -> None:
    """The gradient of the objective is finite where the training ended."""
    gradient = objective_gradient(as_method(inference), fitted.model, fitted.model.to_model_units(data))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))


@eqx.filter_jit
def objective_gradient(method, model: DeepGP, scaled: Dataset) -> PyTree:
    """Of the objective, by every trainable parameter."""
    problem = Problem(method, model, Dataset(scaled.x, scaled.y))
    return jax.grad(lambda trainable: problem.loss(trainable, jr.key(0))[0])(problem.trainable())


def difference(a: Fit, b: Fit, x: np.ndarray, x_of_b: np.ndarray) -> float:
    """The largest difference of two predictions, in means and standard deviations, in the units of y."""
    p, q = dgpax.predict(a, x), dgpax.predict(b, x_of_b)
    return float(np.max(np.abs([p.mean - q.mean, p.stddev - q.stddev])))


def value(model: DeepGP, pattern: str) -> np.ndarray:
    """The value of the only parameter that matches."""
    (parameter,) = find(model, pattern).values()
    return np.array(parameter.value)


def noise_deviation(fitted: Fit, y: np.ndarray) -> float:
    """The standard deviation of the noise in the units of y."""
    return float(np.sqrt(value(fitted.model, "*.noise_variance")) * np.std(y))
