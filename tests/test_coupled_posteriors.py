"""Coupled posteriors as users meet them: one word, and errors in words."""

from __future__ import annotations

import numpy as np
import pytest

import dgpax
from dgpax.errors import InputError, UnknownNameError
from dgpax.inference import Gradient, NaturalGradient, Variational
from dgpax.posteriors import Coupled


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (40, 2))
    return dgpax.dataset(x, np.sin(3 * x[:, :1]) + 0.1 * rng.normal(size=(40, 1)))


@pytest.fixture(scope="module")
def model(data):
    return dgpax.star(data, 2, 6, width=2)


@pytest.mark.slow
@pytest.mark.parametrize("word", ["stripes-and-arrow", "fully-coupled"])
def test_one_word_trains_and_predicts(word, model, data):
    engine = NaturalGradient(max_steps=150, steps_per_call=50)
    fitted = dgpax.fit(model, data, Variational(word), engine=engine, progress=False)
    assert isinstance(fitted.posterior, Coupled)
    assert fitted.report.history[-1] > fitted.report.history[0]
    assert float(np.max(np.abs(fitted.posterior.outputs.coupling.value))) > 0
    assert float(np.sqrt(np.mean((dgpax.predict(fitted, data.x).mean - data.y) ** 2))) < 0.4
    draws = dgpax.prediction.sample_jointly(fitted, data.x[:5], num_samples=4)
    assert draws.shape == (4, 5, 1)
    functions = dgpax.prediction.draw_functions(fitted, 3, num_features=64)
    np.testing.assert_array_equal(functions(data.x[:5]), functions(data.x[:5]))


@pytest.mark.slow
def test_the_sampled_estimator_trains_too(model, data):
    method = Variational("stripes-and-arrow", num_samples=3, objective="sampled-elbo")
    fitted = dgpax.fit(model, data, method, engine=Gradient(max_steps=60, steps_per_call=30), progress=False)
    assert fitted.report.history[-1] > fitted.report.history[0]


def test_a_block_above_the_diagonal_is_refused(model):
    mask = np.eye(3, dtype=bool)
    mask[0, 2] = True
    with pytest.raises(InputError, match=r"lower-triangular; block \(0, 2\)"):
        Coupled.at_prior(model.layers, mask)


def test_a_mask_of_the_wrong_size_is_refused(model):
    with pytest.raises(InputError, match=r"2 \+ 1 = 3"):
        Coupled.at_prior(model.layers, np.eye(4, dtype=bool))
    with pytest.raises(InputError, match="square"):
        Coupled.at_prior(model.layers, np.ones((3, 2), bool))


@pytest.mark.slow
def test_an_open_pattern_has_no_natural_gradients_but_trains(model, data):
    mask = np.eye(3, dtype=bool)
    mask[1, 0] = mask[2, 1] = True
    posterior = Coupled.at_prior(model.layers, mask)
    with pytest.raises(InputError, match=r"closed under multiplication.* Add \(2, 0\), or"):
        dgpax.fit(model, data, Variational(posterior), engine=NaturalGradient(max_steps=4), progress=False)
    engine = Gradient(max_steps=10, steps_per_call=5)
    fitted = dgpax.fit(model, data, Variational(posterior), engine=engine, progress=False)
    assert np.isfinite(fitted.report.history[-1])


def test_unknown_words_widths_and_other_layers_are_refused(model, data):
    with pytest.raises(UnknownNameError, match="stripes-and-arrow"):
        dgpax.fit(model, data, Variational("stripes"), progress=False)
    with pytest.raises(UnknownNameError, match="sampled"):
        Variational(objective="drawn")
    with pytest.raises(InputError, match="width >= 1; got 0"):
        dgpax.star(data, 3, 6, width=0)
    other = Coupled.at_prior(dgpax.star(data, 2, 5, width=2).layers)
    with pytest.raises(InputError, match="inducing outputs"):
        dgpax.fit(model, data, Variational(other), progress=False)
