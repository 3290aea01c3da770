"""STRIDE in the loop of all fits: limits, callbacks, checkpoints, and what its report says of the chains."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from saved_models import same
from test_stride_predictions import untrained

import dgpax
from dgpax.errors import DgpaxWarning, InputError, InputTypeError, UnknownNameError
from dgpax.inference import Sparse
from dgpax.kernels import RBF
from dgpax.likelihoods import Poisson
from dgpax.stride import (
    Chains,
    Composition,
    CrossApproximation,
    EllipticalSlice,
    FullySparse,
    Residual,
    Schedule,
    Stride,
)
from dgpax.stride._top import SampledTop

N, M = 20, 4
X = np.linspace(-1.0, 1.0, N)[:, None]
DATA = dgpax.dataset(X, np.sin(4 * X))
SHORT = Schedule(num_iterations=3, num_steps=10, num_exchanges=1, num_candidates=5, warm_up=1)
QUIET = pytest.mark.filterwarnings("ignore:The chains")


@pytest.fixture(scope="module")
def initial():
    return untrained(DATA, M)


@pytest.fixture(scope="module")
def method(initial):
    return Stride(M, 3, CrossApproximation(6), schedule=SHORT, initial=initial)


@pytest.fixture(scope="module")
def whole(method):
    with pytest.warns(DgpaxWarning, match="haven't mixed"):
        return dgpax.fit(Residual(), DATA, method, progress=False)


class PowerCut(Exception):
    """What ends a fit in the middle."""


def same_fit(a, b) -> bool:
    """To the last bit, what is said of the course included."""
    reports = (dataclasses.replace(fitted.report, seconds=0.0, resumed_at=()) for fitted in (a, b))
    return same((a.target, a.tops), (b.target, b.tops)) and same(*reports)


@QUIET
def test_a_fit_that_was_cut_off_ends_where_it_would_have(method, whole, tmp_path):
    def cut(progress):
        if progress.step >= 2:
            raise PowerCut

    settings = {"progress": False, "checkpoint": tmp_path, "checkpoint_every": 0.0}
    with pytest.raises(PowerCut):
        dgpax.fit(Residual(), DATA, method, callbacks=[cut], **settings)
    resumed = dgpax.fit(Residual(), DATA, method, **settings)
    assert resumed.report.resumed_at == (1,)
    assert same_fit(resumed, whole)
    with pytest.raises(InputError, match="another seed"):
        dgpax.fit(Residual(), DATA, method, seed=1, **settings)


@QUIET
def test_time_and_callbacks_end_it(method, whole):
    seen = []

    def enough(progress):
        seen.append(progress.target().chains.log_likelihood)
        return progress.step == 2

    short = dgpax.fit(Residual(), DATA, method, max_seconds=0.0, progress=False)
    assert short.report.steps == 1 and short.report.unfinished and "time" in short.report.stopped_because
    assert np.isnan(short.report.details["r_hat"]) and "ended too soon" in short.report.notes[-1]
    ended = dgpax.fit(Residual(), DATA, method, callbacks=[enough], progress=False)
    assert len(seen) == ended.report.steps == 2 and "callback" in ended.report.stopped_because
    np.testing.assert_array_equal(ended.target.chains.log_likelihood, seen[-1])
    assert np.all(np.isfinite(dgpax.predict(short, X).mean))
    more = dgpax.fit(Residual(), DATA, ended.more(1), progress=False)
    assert same((more.target, more.tops), (whole.target, whole.tops))


@QUIET
def test_ctrl_c_keeps_what_is_complete(method):
    def stop(progress):
        raise KeyboardInterrupt

    fitted = dgpax.fit(Residual(), DATA, method, callbacks=[stop], progress=False)
    assert fitted.report.interrupted and fitted.report.steps == 1
    assert fitted.report.details["iterations"] == 1


@pytest.mark.slow
def test_chains_that_mix_are_not_complained_about():
    """Much noise: the posterior is close to the prior, from which slices draw far apart."""
    data = dgpax.dataset(X, np.random.default_rng(0).normal(size=X.shape))
    schedule = Schedule(num_iterations=3, num_steps=200, num_exchanges=0, warm_up=1)
    method = Stride(
        M, 4, FullySparse(), EllipticalSlice(), schedule, initial=untrained(data, M, RBF(1.0, 0.01)), start_scale=1.0
    )
    fitted = dgpax.fit(Composition(), data, method, progress=False)
    assert fitted.report.details["r_hat"] < 1.1
    assert fitted.report.details["effective_sample_size"] > 20
    assert not fitted.report.notes


def test_chains_begin_apart(whole, method):
    assert "R̂ of predictions" in whole.report.notes[-1] and "fitted.more(10)" in whole.report.notes[-1]
    assert whole.report.details["r_hat"] > 1.1
    nothing = Schedule(num_iterations=0)
    wide, none = (
        dgpax.fit(
            Residual(), DATA, Stride(M, 3, schedule=nothing, initial=method.initial, start_scale=s), progress=False
        )
        for s in (0.5, 0.0)
    )
    spreads = [float(np.std(f.target.chains.position[0], axis=0).mean()) for f in (wide, none)]
    assert spreads[0] > 0.3 and spreads[1] == 0.0


def test_jitter_and_clipped_variances_are_counted(monkeypatch):
    """Points that explain more than all of the variance leave less than none, as rounding may."""
    nothing, initial = Schedule(num_iterations=0), untrained(DATA, 10, RBF(5.0, 1.0))
    fitted = dgpax.fit(Residual(), DATA, Stride(10, 2, schedule=nothing, initial=initial), progress=False)
    assert 0 < fitted.report.largest_jitter < 1e-6 and fitted.report.clipped_variances == 0
    chains, posterior = fitted.target.chains, fitted.target.posterior
    nothing_left = SampledTop(jnp.asarray(initial.rows), Poisson()), jnp.asarray(0.5)
    posterior = eqx.tree_at(lambda p: (p.top, p.hidden.jitter), posterior, nothing_left)
    chains = Chains((*chains.position, jnp.zeros((2, 10, 1))), chains.log_likelihood, chains.scale)
    target = fitted.target._replace(posterior=posterior, chains=chains)
    condition = SampledTop.condition

    def too_sure(self, *given):
        return eqx.tree_at(lambda top: top.prior_root, condition(self, *given), replace_fn=lambda root: 1.01 * root)

    monkeypatch.setattr(SampledTop, "condition", too_sure)
    outcome = fitted.method.outcome(target, Residual(), DATA, DATA)
    assert outcome.largest_jitter == 0.5 and 0 < outcome.clipped_variances <= 2 * N


def test_words_and_engines_that_do_not_fit(method):
    with pytest.raises(UnknownNameError, match="stride"):
        dgpax.fit(Residual(), DATA, "strides")
    with pytest.raises(InputError, match="STRIDE takes an architecture"):
        dgpax.fit(dgpax.gp_regression(DATA), DATA, "stride")
    with pytest.raises(InputTypeError, match='inference="stride"'):
        dgpax.fit(dgpax.sparse_gp_regression(DATA, 3), DATA, Sparse(), engine=method.default_engine())
