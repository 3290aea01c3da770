"""Checkpoints: a fit that was cut off goes on as if nothing had happened."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import types
from functools import cache
from pathlib import Path

import checkpointed_fit
import jax
import numpy as np
import optax
import pytest

import dgpax
from dgpax.data import InMemory
from dgpax.errors import InputError, ModelFileError
from dgpax.inference import LBFGS, Exact, Gradient, NaturalGradient, Settling, Sparse, StopWhenStale, Variational
from dgpax.storage import fingerprint


class PowerCut(Exception):
    """What ends a fit in the middle of everything."""


def cut_off_at(step: int):
    def callback(progress):
        if progress.step >= step:
            raise PowerCut

    return callback


@cache
def data() -> dgpax.Dataset:
    x = np.linspace(-1, 1, 16)[:, None]
    return dgpax.dataset(x, np.sin(4 * x[:, 0]))


@cache
def sparse_model() -> dgpax.DeepGP:
    return dgpax.sparse_gp_regression(data(), 4)


def same(a: dgpax.Fit, b: dgpax.Fit) -> bool:
    """The same parameters, posterior and history, to the last bit."""
    pairs = zip(jax.tree.leaves((a.model, a.posterior)), jax.tree.leaves((b.model, b.posterior)), strict=True)
    equal = all(np.asarray(one).tobytes() == np.asarray(other).tobytes() for one, other in pairs)
    unequal = ("seconds", "resumed_at", "history")
    reports = [{k: v for k, v in vars(fitted.report).items() if k not in unequal} for fitted in (a, b)]
    return equal and reports[0] == reports[1] and a.report.history.tobytes() == b.report.history.tobytes()


def _bumpy(target) -> float:
    """A score that rises and falls: the length scale at first near some value, then away from it."""
    return -abs(float(np.mean(target.model.layers[0].kernel.lengthscale.value)) - 0.97)


STEPS = Gradient(max_steps=60, steps_per_call=4)
NATURAL = NaturalGradient(max_steps=60, steps_per_call=4)
CASES = {
    "minibatches": lambda: (Variational(), STEPS, None),
    "natural gradients": lambda: (Variational(), NATURAL, None),
    "two stages": lambda: (Sparse(), LBFGS(max_steps=30), None),
    "restarts": lambda: (Exact(), LBFGS(max_steps=60, restarts=2), None),
    "a stopping rule": lambda: (Variational(), STEPS, StopWhenStale(_bumpy, every=4, patience=4)),
}

SLOW = ("restarts", "natural gradients")


def fit(case: str, **settings) -> dgpax.Fit:
    method, engine, stopping = CASES[case]()
    feed = InMemory(data(), batch_size=5) if engine is STEPS else data()
    return dgpax.fit(sparse_model(), feed, method, engine=engine, stopping=stopping, **settings)


@pytest.mark.parametrize("case", [pytest.param(c, marks=pytest.mark.slow if c in SLOW else []) for c in CASES])
def test_a_fit_that_was_cut_off_twice_ends_where_it_would_have(case, tmp_path):
    whole = fit(case)
    first, second = (10, 20) if case == "a stopping rule" else (15, 40)
    for step in (first, second):
        with pytest.raises(PowerCut):
            fit(case, checkpoint=tmp_path, checkpoint_every=0.0, callbacks=[cut_off_at(step)])
    resumed = fit(case, checkpoint=tmp_path, checkpoint_every=0.0)
    assert len(resumed.report.resumed_at) == 2 and same(whole, resumed)
    assert 0 < resumed.report.resumed_at[0] < resumed.report.resumed_at[1] < whole.report.steps
    assert f"resumed at           {resumed.report.resumed_at[0]}, " in str(resumed.report)
    if case == "a stopping rule":
        assert whole.report.steps < 60 and "stopped improving" in whole.report.stopped_because
    if case == "two stages":
        assert resumed.report.resumed_at[0] < 30 <= resumed.report.resumed_at[1]


def test_an_ended_fit_isnt_repeated_and_says_so(tmp_path, caplog):
    whole = fit("minibatches", checkpoint=tmp_path)
    steps = []
    with caplog.at_level(logging.INFO, logger="dgpax"):
        again = fit("minibatches", checkpoint=tmp_path, callbacks=[lambda progress: steps.append(progress.step)])
    assert same(whole, again) and not steps and again.report.resumed_at == (60,)
    assert f"Resumed the fit of {tmp_path} at step 60" in caplog.text


def test_a_fit_that_ran_out_of_time_goes_on(tmp_path):
    used = []
    look = lambda progress: used.append(progress.seconds)  # noqa: E731
    short = fit("minibatches", checkpoint=tmp_path, max_seconds=0.0, callbacks=[look])
    assert short.report.steps == 4 and "time" in short.report.stopped_because and short.report.unfinished
    longer = fit("minibatches", checkpoint=tmp_path)
    assert longer.report.resumed_at == (4,) and same(longer, fit("minibatches"))
    assert longer.report.seconds > used[0] and not longer.report.unfinished


def test_checkpoints_are_written_when_it_is_time(tmp_path):
    with pytest.raises(PowerCut):
        fit("minibatches", checkpoint=tmp_path / "a" / "b", checkpoint_every=1000.0, callbacks=[cut_off_at(40)])
    assert not list((tmp_path / "a" / "b").iterdir())
    with pytest.raises(InputError, match="seconds"):
        fit("minibatches", checkpoint=tmp_path, checkpoint_every=-1.0)


def test_another_fits_checkpoint_is_refused_and_the_difference_named(tmp_path):
    method, engine, _ = CASES["minibatches"]()
    settings = {"engine": engine, "checkpoint": tmp_path, "max_seconds": 0.0}
    dgpax.fit(sparse_model(), data(), method, **settings)
    frozen = dgpax.freeze(sparse_model(), "layers[0].kernel.variance")
    other = dgpax.dataset(data().x, data().y + 1e-9)
    slower = Gradient(optimiser=optax.adam(0.02), max_steps=60, steps_per_call=4)
    for wrong, arguments in {
        "model": ((frozen, data(), method), {}),
        "data": ((sparse_model(), other, method), {}),
        "inference": ((sparse_model(), data(), Variational(num_samples=2)), {}),
        "engine": ((sparse_model(), data(), method), {"engine": slower}),
        "seed": ((sparse_model(), data(), method), {"seed": 1}),
        "stopping": ((sparse_model(), data(), method), {"stopping": StopWhenStale(_bumpy)}),
    }.items():
        with pytest.raises(InputError, match=f"is of another fit, with another {wrong}\\."):
            dgpax.fit(*arguments[0], **{**settings, **arguments[1]})


def test_a_damaged_checkpoint_is_refused(tmp_path):
    fit("minibatches", checkpoint=tmp_path, max_seconds=0.0)
    (file,) = tmp_path.iterdir()
    raw = bytearray(file.read_bytes())
    raw[-9] ^= 1
    file.write_bytes(raw)
    with pytest.raises(ModelFileError, match="checksum"):
        fit("minibatches", checkpoint=tmp_path)


def test_fingerprints_see_settings_of_optimisers_and_functions():
    rates = [fingerprint(optax.adam(rate)) for rate in (0.01, 0.01, 0.02)]
    assert rates[0] == rates[1] != rates[2]
    schedules = [optax.adam(schedule) for schedule in (lambda i: 0.1 / (1 + i), lambda i: 0.1 / (2 + i))]
    schedules += [optax.adam(optax.cosine_decay_schedule(0.1, steps)) for steps in (10, 11)]
    values = [1, 1.0, True, "1", (1,), [1], np.ones(1), np.ones(1, np.float32), {1: 1}, int, None, frozenset({1})]
    assert len({fingerprint(value) for value in [*schedules, *values]}) == len(schedules) + len(values)

    def itself():
        return itself

    assert fingerprint(itself) == fingerprint(itself)
    of_no_module = types.FunctionType(itself.__code__, {}, closure=itself.__closure__)
    assert fingerprint(of_no_module) != fingerprint(itself)


def test_default_engines_are_the_same_in_a_process_that_checks_no_shapes():
    engines = "from dgpax.inference import *; engines = [Gradient(), NaturalGradient(), Settling()]"
    printed = "from dgpax.storage import fingerprint; print(*map(fingerprint, engines))"
    done = subprocess.run([sys.executable, "-c", f"{engines}; {printed}"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [fingerprint(engine) for engine in (Gradient(), NaturalGradient(), Settling())]


def kill_and_resume(folder: Path, whole: dgpax.Fit, rng: np.random.Generator) -> None:
    """A process that is killed at a random moment loses at most the last interval, and nothing in the end."""
    step, delay = 25 * int(rng.integers(25, 70)), rng.uniform(0, 4 * checkpointed_fit.PAUSE)
    command = [sys.executable, checkpointed_fit.__file__, str(folder), str(step), str(delay)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    assert done.returncode == -signal.SIGKILL
    said_at = {int(step): float(clock) for step, clock in map(str.split, done.stdout.splitlines())}
    resumed = checkpointed_fit.run(folder)
    (kept,) = resumed.report.resumed_at
    assert 0 < kept < 2000 and same(resumed, whole)
    later = [clock for step, clock in said_at.items() if step > kept]
    for clock in later[:-1]:  # the process lived on after these, so that none of their checkpoints can have been due
        assert clock + checkpointed_fit.PAUSE - later[0] < checkpointed_fit.EVERY


@pytest.fixture(scope="module")
def whole_fit() -> dgpax.Fit:
    return checkpointed_fit.run(None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_fit_that_is_killed_anywhere_goes_on(seed, whole_fit, tmp_path):
    kill_and_resume(tmp_path, whole_fit, np.random.default_rng(seed))
