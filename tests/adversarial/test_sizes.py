"""Too few rows, too many inducing points, the wrong number of axes: cases 11 to 14."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

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
    table,
    train,
    value,
)
from dgpax import Dataset
from dgpax.errors import DgpaxWarning


@pytest.mark.parametrize("inference", BOTH)
def test_case_11_one_row_is_the_prior_and_one_point(inference):
    """Where the model starts: f has variance 1 and a length scale of √2 in both columns, the noise variance 0.1."""
    row, y = NEW_X[:1], 7.5
    data = dgpax.dataset(row, [y])
    if inference == "sparse":
        with pytest.warns(DgpaxWarning, match="1 distinct rows: using 1"):
            model = model_for(inference, data)
    else:
        model = model_for(inference, data)
    with pytest.warns(DgpaxWarning, match="one row only"):
        fitted = dgpax.fit(model, data, inference, engine=ENGINE)
    assert fitted.report.steps == 0
    correlation = np.exp(-0.25 * np.sum((NEW_X - row) ** 2, axis=1))
    prediction = dgpax.predict(fitted, NEW_X)
    assert_allclose(prediction.mean, y, rtol=1e-12)
    assert_allclose(prediction.variance[:, 0], 1.1 - correlation**2 / 1.1, atol=1e-9)


def test_case_11_parameters_can_be_trained_again_with_more_rows():
    with pytest.warns(DgpaxWarning, match="one row only"):
        fitted = dgpax.fit(dgpax.gp_regression(one := dgpax.dataset(NEW_X[:1], [7.5])), one)
    assert all(parameter.trainable for parameter in dgpax.parameters.find(fitted.model).values())


def test_case_12_no_rows():
    with pytest.raises(ValueError, match=r"Found 0 sample\(s\) .*minimum of 1 is required"):
        dgpax.dataset(np.zeros((0, 2)), np.zeros(0))


def test_case_12_no_rows_in_an_unchecked_dataset():
    empty = Dataset(jnp.zeros((0, 2)), jnp.zeros((0, 1)))
    message = r"0 sample\(s\) while a minimum of 1 is required"
    with pytest.raises(ValueError, match=message):
        dgpax.gp_regression(empty)
    with pytest.raises(ValueError, match=message):
        dgpax.sparse_gp_regression(empty)
    with pytest.raises(ValueError, match=message):
        dgpax.fit(dgpax.gp_regression(dgpax.dataset(*table())), empty)


@pytest.mark.parametrize("inference", BOTH)
def test_case_12_no_rows_to_predict(inference):
    fitted = condition(inference, dgpax.dataset(*table()))
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        dgpax.predict(fitted, np.zeros((0, 2)))


@ENGINES
@pytest.mark.parametrize("points", ["k-means", "variance", "bound"])
def test_case_13_more_inducing_points_than_rows(points, engine):
    """40 rows of which 8 are distinct: 50 inducing points become 8."""
    x, y = table()
    x = x[np.arange(ROWS) % INDUCING]
    data = dgpax.dataset(x, y)
    with pytest.warns(DgpaxWarning, match=r"50 inducing points were asked for.*8 distinct rows: using 8"):
        model = dgpax.sparse_gp_regression(data, 50, points=points)
    assert value(model, "*.locations").shape == (INDUCING, 2)
    fitted = dgpax.fit(model, data, "sparse", engine=engine)
    assert_finite(fitted, data)
    assert_finite_gradient("sparse", fitted, data)


def test_case_13_one_inducing_point_more_than_rows():
    data = dgpax.dataset(*table())
    with pytest.warns(DgpaxWarning, match="the data has 40 distinct rows: using 40"):
        model = dgpax.sparse_gp_regression(data, ROWS + 1)
    assert_array_equal(value(model, "*.locations"), model.to_model_units(data).x)


def test_case_14_one_column_as_a_vector():
    x, y = table()
    with pytest.raises(ValueError, match="Reshape your data"):
        dgpax.dataset(x[:, 0], y)


@pytest.mark.parametrize("inference", BOTH)
def test_case_14_one_row_as_a_vector_at_prediction(inference):
    fitted = train(inference, dgpax.dataset(*table()))
    with pytest.raises(ValueError, match="Reshape your data"):
        dgpax.predict(fitted, NEW_X[0])
