"""Held-out rows as a monitor."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dgpax
from dgpax.errors import InputError
from dgpax.inference import Gradient, ModelAndPosterior, NaturalGradient, StopWhenStale
from dgpax.prediction import HeldOut, log_density

RNG = np.random.default_rng(0)
X = np.linspace(-1.0, 1.0, 30)[:, None]
Y = 500.0 + 40.0 * np.hstack([np.sin(4 * X), np.cos(4 * X)]) + RNG.normal(size=(30, 2))
DATA = dgpax.dataset(X[::2], Y[::2])
GAPS = np.arange(15)[:, None] == [3, 7]
ROWS = dgpax.dataset(X[1::2], np.where(GAPS, np.nan, Y[1::2]), missing="keep_outputs")


@pytest.mark.parametrize(("num_layers", "num_latents"), [(1, 0), (2, 0), (2, 1)])
def test_it_is_the_mean_log_density_in_raw_units(num_layers, num_latents):
    model = dgpax.deep_gp(DATA, num_layers, 6, num_latents=num_latents)
    fitted = dgpax.fit(model, DATA, "variational", engine=NaturalGradient(max_steps=25), progress=False)
    score = HeldOut(ROWS)(ModelAndPosterior(fitted.model, fitted.posterior))
    assert_allclose(score, np.mean(log_density(fitted, ROWS, num_samples=20)), rtol=1e-12)


def test_the_best_state_is_kept_and_a_fit_goes_on_with_its_rule(tmp_path):
    model, engine = dgpax.sparse_gp_regression(DATA, 6), Gradient(max_steps=40, steps_per_call=5)

    def fit(**settings) -> tuple[dgpax.Fit, StopWhenStale]:
        rule = StopWhenStale(HeldOut(ROWS), every=5, patience=3)
        return dgpax.fit(model, DATA, "variational", engine=engine, stopping=rule, progress=False, **settings), rule

    fitted, rule = fit()
    assert_allclose(np.mean(log_density(fitted, ROWS)), max(rule.scores), rtol=1e-10)
    fit(checkpoint=tmp_path, max_seconds=0.0)
    resumed, again = fit(checkpoint=tmp_path)
    assert resumed.report.resumed_at == (5,) and again.scores == rule.scores


def test_what_it_cannot_watch_is_refused():
    rule = StopWhenStale(HeldOut(ROWS))
    with pytest.raises(InputError, match="trains a DeepGP"):
        dgpax.fit(dgpax.gp_regression(DATA), DATA, engine=Gradient(max_steps=60), stopping=rule, progress=False)
    model, engine = dgpax.sparse_gp_regression(DATA, 6), Gradient(max_steps=5, steps_per_call=5)
    for monitor, message in (
        (HeldOut(ROWS, num_samples=0), "at least 1; got 0"),
        (HeldOut(dgpax.dataset(np.hstack([X, X]), Y)), "have 2 inputs and 2 outputs, but the model is for 1 and 2"),
    ):
        rule = StopWhenStale(monitor, every=5)
        with pytest.raises(InputError, match=message):
            dgpax.fit(model, DATA, "variational", engine=engine, stopping=rule, progress=False)
