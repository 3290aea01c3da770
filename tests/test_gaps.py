"""Rows with gaps are harder to predict, and models know."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import dgpax
from dgpax.data import Encoding
from dgpax.kernels import RBF, MarkedWhite
from dgpax.likelihoods import GaussianNoise, HeteroskedasticGaussian


def columns(num_rows: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """y = a + 2 b + noise of 0.1, with b ~ N(0, 1) missing in a fifth of the rows."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, num_rows))
    y = a + 2.0 * b + 0.1 * rng.normal(size=num_rows)
    return {"a": a, "b": np.where(rng.uniform(size=num_rows) < 0.2, np.nan, b)}, y


def test_noise_at_marked_points():
    x = jnp.asarray([[0.3, 1.0, -2.0], [1.0, -1.0, 0.0], [0.0, 0.5, 4.0]])
    kernel = MarkedWhite([0.5, 3.0]).on(1, 2)
    noise = np.array([0.5, 0.0, 3.5])
    assert_allclose(kernel.diag(x), noise, rtol=1e-12)
    assert_allclose(kernel.gram(x), np.diag(noise), rtol=1e-12)
    assert not np.any(kernel.cross(x, x))


@pytest.mark.slow
def test_an_exact_gp_is_unsure_where_there_are_gaps():
    """It says ±2, the effect of what is missing, at rows with gaps (17 of 100), and ±0.1 elsewhere."""
    table, y = columns(100, seed=0)
    encoding = Encoding.of(table)
    data = dgpax.dataset(encoding.apply(table), y)
    model = dgpax.gp_regression(data, RBF(jnp.full(3, 2.0)), gaps=encoding.gaps)
    fitted = dgpax.fit(model, data, progress=False)
    new, _ = columns(200, seed=1)
    gap, stddev = np.isnan(new["b"]), np.asarray(dgpax.predict(fitted, encoding.apply(new)).stddev)[:, 0]
    assert_allclose(np.median(stddev[gap]), 2.0, rtol=0.4)
    assert_allclose(np.median(stddev[~gap]), 0.1, rtol=0.4)


@pytest.mark.slow
def test_a_regressor_has_noise_that_depends_on_gaps():
    table, y = columns(100, seed=0)
    x, whole = np.stack(list(table.values()), axis=1), np.nan_to_num(np.stack(list(table.values()), axis=1))

    def likelihood(**words):
        return dgpax.DeepGPRegressor(**{"num_layers": 1, "max_steps": 5, **words})

    assert isinstance(likelihood().fit(x, y).fit_.model.likelihood, HeteroskedasticGaussian)
    assert isinstance(likelihood().fit(whole, y).fit_.model.likelihood, GaussianNoise)
    assert isinstance(likelihood(likelihood="gaussian").fit(x, y).fit_.model.likelihood, GaussianNoise)
    assert isinstance(likelihood(inference="exact").fit(x, y).fit_.model.likelihood, GaussianNoise)
