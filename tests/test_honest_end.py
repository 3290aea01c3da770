"""A fit says truly why it ended, and gives what it has wherever it is ended."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dgpax
from dgpax.inference import LBFGS, SGHMC, Gradient, NaturalGradient, Sampling, Settling, StopWhenStale

NATURAL = NaturalGradient(max_steps=30, steps_per_call=25)


@pytest.fixture(scope="module")
def data() -> dgpax.Dataset:
    x = np.linspace(-1, 1, 20)[:, None]
    return dgpax.dataset(x, np.sin(5 * x[:, 0]))


@pytest.fixture(scope="module")
def model(data) -> dgpax.DeepGP:
    return dgpax.sparse_gp_regression(data, 5)


def _settling(max_steps: int) -> Settling:
    return Settling(max_steps=max_steps, settle_steps=3, patience=30, steps_per_call=10)


def test_steps_that_run_out_are_no_convergence(model, data):
    fitted = dgpax.fit(model, data, "variational", engine=_settling(9), progress=False)
    report = fitted.report
    assert report.steps == 9
    assert not report.converged and report.unfinished
    assert report.stopped_because == "all 9 steps were taken before the objective was flat"
    assert "more steps" in report.advice and report.advice in str(report)


def test_a_flat_objective_is_convergence(model, data):
    fitted = dgpax.fit(model, data, "variational", engine=_settling(2000), progress=False)
    assert fitted.report.converged and not fitted.report.unfinished and not fitted.report.advice
    assert fitted.report.steps < 2000


@pytest.fixture(scope="module")
def unfinished(model, data) -> dgpax.Fit:
    return dgpax.fit(model, data, "sparse", engine=LBFGS(max_steps=20), progress=False)


def test_the_first_stage_says_nothing_about_the_last(model, data, unfinished):
    """Sparse() holds the inducing points first: that stage converges here, and the one that follows can't."""
    stages = []
    callback = lambda progress: stages.append(progress.step)  # noqa: E731
    fitted = dgpax.fit(
        model, data, "sparse", engine=LBFGS(max_steps=60, tolerance=1e-2), callbacks=[callback], progress=False
    )
    assert fitted.report.converged
    assert not unfinished.report.converged and unfinished.report.unfinished


def test_an_engine_without_a_rule_does_what_it_was_told(model, data):
    fitted = dgpax.fit(model, data, "variational", engine=Gradient(max_steps=3), progress=False)
    assert not fitted.report.converged and not fitted.report.unfinished
    assert fitted.report.stopped_because == "all 3 steps were taken"


def test_a_fit_that_ends_before_the_first_look_keeps_its_steps(model, data):
    stopping = StopWhenStale(lambda target: 0.0, every=50)
    looked: Any = dgpax.fit(model, data, "variational", engine=NATURAL, stopping=stopping, progress=False)
    plain: Any = dgpax.fit(model, data, "variational", engine=NATURAL, progress=False)
    noise = [float(fitted.model.likelihood.noise_variance.value) for fitted in (looked, plain)]
    assert noise[0] == noise[1] != float(model.likelihood.noise_variance.value)


def test_looks_are_where_they_were_asked_for(model, data):
    steps = []
    stopping = StopWhenStale(lambda target: float(len(steps)), every=7)
    dgpax.fit(
        model,
        data,
        "variational",
        engine=NATURAL,
        stopping=stopping,
        callbacks=[lambda progress: steps.append(progress.step)],
        progress=False,
    )
    assert steps == [7, 14, 21, 28, 30] and len(stopping.scores) == 4


@pytest.mark.parametrize(("end", "number"), [(20, 0), (60, 2)])
def test_a_chain_that_ends_early_has_draws_of_its_own(model, data, end, number):
    """Before or after its first draw; it used to leave zeros, that is the prior's mean, where draws were missing."""
    engine = SGHMC(num_warmup=40, spacing=10, num_draws=5, steps_per_call=20)
    with pytest.warns(dgpax.errors.DgpaxWarning, match=f"ended after {max(number, 1)} of 5 draws"):
        fitted: Any = dgpax.fit(
            model,
            data,
            Sampling(num_draws=5),
            engine=engine,
            callbacks=[lambda progress: progress.step >= end],
            progress=False,
        )
    (draws,) = (np.asarray(values) for values in fitted.posterior.blocks)
    assert len(np.unique(draws, axis=0)) == max(number, 1)
    assert np.all(np.any(draws != 0, axis=(1, 2)))


def test_the_report_warns_of_a_fit_that_is_not_finished(unfinished, data):
    assert "Unfinished" in dgpax.report.page(unfinished, data, data)
