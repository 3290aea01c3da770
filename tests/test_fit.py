"""The loop: convergence, rejection, interruption, early stopping, callbacks, reports."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from programs import compilations
from threadpoolctl import threadpool_info, threadpool_limits

import dgpax
from dgpax.data import InMemory
from dgpax.errors import InputError, NumericalError, UnknownNameError
from dgpax.inference import (
    LBFGS,
    AbstractMethod,
    Exact,
    Gradient,
    Sparse,
    StopWhenFalling,
    StopWhenStale,
    Variational,
    flat_adam,
)
from dgpax.inference._loop import suitable_blas_threads
from dgpax.inference._progress import Bar
from dgpax.objectives import log_evidence
from dgpax.parameters import find, freeze, set_prior


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(25, 1))
    return dgpax.dataset(x, np.sin(3 * x[:, 0]) + 0.1 * rng.normal(size=25))


FAST = LBFGS(max_steps=60, steps_per_call=1)


def _same(a, b):
    return all(np.array_equal(u, v) for u, v in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


@pytest.mark.parametrize("inference", ["exact", "sparse"])
def test_fit_converges_and_reports(inference, data):
    model = dgpax.sparse_gp_regression(data, 6)
    fitted = dgpax.fit(model, data, inference, engine=LBFGS())
    report = fitted.report
    assert report.converged and not report.interrupted and report.rejected_steps == 0
    assert report.objective_end > report.objective_start
    assert len(report.history) == report.steps
    assert "it converged" in str(report)
    noise = float(find(fitted.model, "likelihood.noise_variance")["likelihood.noise_variance"].value)
    assert fitted.model.scaling is not None
    assert 0.05 < np.sqrt(noise * float(fitted.model.scaling.y_scale[0]) ** 2) < 0.2


def test_the_same_seed_gives_the_same_fit(data):
    engine = Gradient(max_steps=20, steps_per_call=10)
    model, feed = dgpax.deep_gp(data, 1, 5), InMemory(data, batch_size=8)
    a, b = (dgpax.fit(model, feed, "variational", engine=engine, seed=3) for _ in range(2))
    c = dgpax.fit(model, feed, "variational", engine=engine, seed=4)
    assert _same(a.model, b.model)
    assert not _same(a.model, c.model)


@pytest.mark.slow
def test_lbfgs_keeps_its_draws_from_step_to_step(data):
    """What it ended with is what it begins with when it goes on with the same seed, and only then."""
    engine = LBFGS(max_steps=40)
    first = dgpax.fit(dgpax.deep_gp(data, 2, 5), data, Variational(num_samples=20), engine=engine, seed=1)
    method = Variational(first.posterior, num_samples=20)
    same, other = (dgpax.fit(first.model, data, method, engine=LBFGS(max_steps=1), seed=seed).report for seed in (1, 2))
    assert first.report.objective_end > first.report.objective_start
    np.testing.assert_allclose(same.objective_start, first.report.objective_end, rtol=1e-9)
    assert abs(other.objective_start - first.report.objective_end) > 1e-4


def test_frozen_parameters_stay(data):
    model = freeze(dgpax.gp_regression(data), "layers[0].kernel")
    fitted = dgpax.fit(model, data, engine=FAST)
    assert _same(fitted.model.layers[0].kernel, model.layers[0].kernel)
    assert not _same(fitted.model.likelihood, model.likelihood)


@pytest.mark.slow
def test_inducing_points_are_trained_only_if_asked(data):
    free, held = (dgpax.sparse_gp_regression(data, 5, train_points=train) for train in (True, False))
    assert not _same(dgpax.fit(free, data, "sparse", engine=FAST).model.layers[0].inducing, free.layers[0].inducing)
    assert _same(dgpax.fit(held, data, "sparse", engine=FAST).model.layers[0].inducing, held.layers[0].inducing)


def test_hyper_priors_pull(data):
    from dgpax.parameters import LogNormalPrior

    model = dgpax.gp_regression(data)
    tight = set_prior(model, "layers[0].kernel.lengthscale", LogNormalPrior(np.log(3.0), 1e-3))
    fitted = dgpax.fit(tight, data, engine=LBFGS(max_steps=200))
    (lengthscale,) = find(fitted.model, "layers[0].kernel.lengthscale").values()
    np.testing.assert_allclose(lengthscale.value, 3.0, rtol=0.02)


class Poisoned(AbstractMethod):
    """Exact inference whose objective is NaN in every step that is bad."""

    bad: tuple[int, ...] = eqx.field(static=True, default=())
    always: bool = eqx.field(static=True, default=False)

    def target(self, model, data):
        return model

    def terms(self, target, data, key):
        terms = log_evidence(target, data)
        draw = jax.random.uniform(key)
        return eqx.tree_at(lambda t: t.fit, terms, jnp.where(self.always | (draw < 0.3), jnp.nan, terms.fit))

    def finish(self, target, data):
        return Exact().finish(target, data)

    def largest_matrix(self, model, data):
        return data.num_rows

    def default_engine(self):
        return Gradient()


def test_steps_that_are_not_finite_are_rejected(data):
    fitted = dgpax.fit(dgpax.gp_regression(data), data, Poisoned(), engine=Gradient(max_steps=40, steps_per_call=10))
    assert 0 < fitted.report.rejected_steps < 40
    assert len(fitted.report.history) + fitted.report.rejected_steps == 40
    assert np.all(np.isfinite(fitted.report.history))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(fitted.model))


def test_too_many_rejections_raise_and_lose_nothing(data):
    model = dgpax.gp_regression(data)
    with pytest.raises(NumericalError, match="not finite") as caught:
        dgpax.fit(model, data, Poisoned(always=True), engine=Gradient(max_steps=40, steps_per_call=5))
    kept = caught.value.fit
    assert isinstance(kept, dgpax.Fit)
    assert _same(kept.model.layers, model.layers)


def test_a_huge_learning_rate_never_leaves_nan(data):
    engine = Gradient(optimiser=optax.sgd(1e3), max_steps=30, steps_per_call=5)
    try:
        fitted = dgpax.fit(dgpax.gp_regression(data), data, engine=engine)
    except NumericalError as error:
        fitted = error.fit
    assert isinstance(fitted, dgpax.Fit)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(fitted.model))


@pytest.mark.parametrize("tree", [{"a": jnp.ones(()), "b": jnp.arange(6.0).reshape(2, 3)}, {}], ids=["arrays", "none"])
def test_adam_on_one_vector_is_adam(tree):
    ours, theirs = flat_adam(0.1), optax.adam(0.1)
    states = [rule.init(tree) for rule in (ours, theirs)]
    for _ in range(3):
        (moved, states[0]), (expected, states[1]) = (
            rule.update(jax.tree.map(jnp.cos, tree), state, tree)
            for rule, state in zip((ours, theirs), states, strict=True)
        )
        assert eqx.tree_equal(moved, expected, rtol=1e-14, atol=0.0)


def test_interrupt_keeps_the_best_state(data):
    def interrupt(progress):
        if progress.step >= 5:
            raise KeyboardInterrupt

    fitted = dgpax.fit(dgpax.gp_regression(data), data, engine=FAST, callbacks=[interrupt])
    assert fitted.report.interrupted and fitted.report.steps == 5
    assert np.all(np.isfinite(dgpax.predict(fitted, data.x).mean))


def test_callbacks_see_and_stop(data):
    seen = []

    def watch(progress):
        seen.append((progress.step, progress.objective, progress.target()))
        return progress.step >= 3

    fitted = dgpax.fit(dgpax.gp_regression(data), data, engine=FAST, callbacks=[watch])
    assert [step for step, *_ in seen] == [1, 2, 3]
    assert isinstance(seen[-1][2], dgpax.DeepGP)
    assert fitted.report.stopped_because == "a callback asked for it"


def test_early_stopping_restores_the_best(data):
    scores = iter([1.0, 5.0, 4.0, 3.0, 2.0])
    states = []

    def monitor(model):
        states.append(model)
        return next(scores)

    stopping = StopWhenStale(monitor, every=5, patience=3)
    engine = Gradient(max_steps=100, steps_per_call=5)
    fitted = dgpax.fit(dgpax.gp_regression(data), data, engine=engine, stopping=stopping)
    assert fitted.report.steps == 25
    assert _same(fitted.model, states[1])


@pytest.mark.parametrize(
    ("scores", "steps"),
    [
        ([0, 1, 2, 3, 4, 3, 2, 1, 0, -1, -2], 45),  # means of two fall from the look at 30 on, and did so three times
        ([9, 8, 7, 6, 5, 4, 3, 2, 1, 0, -1], 30),  # not before the earliest step
        ([0, 1, 2, 3, 4, 3, 2, 3, 4, 3, 2], 55),  # never three times in a row
    ],
)
def test_stopping_when_the_smoothed_score_falls_keeps_the_last_state(data, scores, steps):
    remaining, states = iter(scores), []

    def monitor(model):
        states.append(model)
        return next(remaining)

    rule = StopWhenFalling(monitor, every=5, window=2, looks_per_strip=1, num_strips=3, earliest=25)
    engine = Gradient(max_steps=55, steps_per_call=5)
    fitted = dgpax.fit(dgpax.gp_regression(data), data, engine=engine, stopping=rule)
    assert fitted.report.steps == steps
    assert _same(fitted.model, states[-1])


def test_no_more_steps_than_asked_for(data):
    fitted = dgpax.fit(dgpax.gp_regression(data), data, engine=Gradient(max_steps=7, steps_per_call=5))
    exact = dgpax.fit(dgpax.gp_regression(data), data, engine=Gradient(max_steps=7, steps_per_call=1))
    assert fitted.report.steps == len(fitted.report.history) == 7
    assert _same(fitted.model, exact.model)


def test_missing_outputs_are_for_variational_inference(data):
    two = dgpax.dataset(
        data.x, np.column_stack([data.y, np.where(np.arange(25) < 3, np.nan, data.y[:, 0])]), missing="keep_outputs"
    )
    for inference in ("exact", "sparse"):
        with pytest.raises(InputError, match="3 outputs are missing"):
            dgpax.fit(dgpax.sparse_gp_regression(two, 5), two, inference)


def test_time_limit(data):
    fitted = dgpax.fit(dgpax.gp_regression(data), data, engine=FAST, max_seconds=0.0)
    assert fitted.report.steps == 1


def test_a_second_fit_of_the_same_shape_compiles_nothing(data):
    with compilations() as first:
        dgpax.fit(dgpax.gp_regression(data), data, engine=LBFGS(max_steps=60, steps_per_call=2))
    with compilations() as second:
        dgpax.fit(dgpax.gp_regression(data), data, engine=LBFGS(max_steps=60, steps_per_call=2))
    assert "jit(take_steps)" in first and not second


def test_the_progress_bar_shows_the_objective(data, capsys):
    dgpax.fit(dgpax.gp_regression(data), data, engine=LBFGS(max_steps=2), progress=True)
    assert "2/2 objective" in capsys.readouterr().err


def test_the_progress_bar_says_what_is_known(monkeypatch):
    """That it compiles, then steps; how long they may take, without the time of compiling, and not beyond a limit."""
    told, now = [], [0.0]
    monkeypatch.setattr("dgpax.inference._progress.time.perf_counter", lambda: now[0])
    for early, deadline in ((True, None), (False, 115.0)):
        bar = Bar(1000, lambda **what: told.append(what), early, deadline)
        bar.compiling()
        for step, seconds in ((100, 100.0), (200, 110.0), (1000, 190.0)):
            now[0] = seconds
            bar.show(step, -1.5)
    assert [(what["description"], what["told"]) for what in told] == [
        ("compiling", ""),
        ("fit", "100/1000 objective -1.5"),
        ("fit", "200/1000 objective -1.5 10 steps/s, 0:01:20 left at most"),
        ("fit", "1000/1000 objective -1.5"),
        ("compiling", ""),
        ("fit", "100/1000 objective -1.5"),
        ("fit", "200/1000 objective -1.5 10 steps/s, 0:00:05 left"),
        ("fit", "1000/1000 objective -1.5"),
    ]


@pytest.mark.slow
def test_float32_data_gives_a_float32_model(data):
    single = dgpax.dataset(np.asarray(data.x, np.float32), np.asarray(data.y, np.float32))
    for inference in ("exact", "sparse"):
        fitted = dgpax.fit(dgpax.sparse_gp_regression(single, 5), single, inference, engine=FAST)
        assert all(p.dtype == jnp.float32 for p in find(fitted.model).values())
        prediction, exact = dgpax.predict(fitted, single.x), np.asarray(single.y)
        assert prediction.mean.dtype == jnp.float32
        assert np.sqrt(np.mean((prediction.mean - exact) ** 2)) < 0.2


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda d: dgpax.fit(dgpax.gp_regression(d), d, "magic"), UnknownNameError, "exact, sparse"),
        (lambda d: dgpax.fit(dgpax.gp_regression(d), d, "sparse"), InputError, "inducing"),
        (lambda d: dgpax.sparse_gp_regression(d, 5, points="magic"), UnknownNameError, "k-means"),
        (lambda d: dgpax.sparse_gp_regression(d, 0), InputError, "at least 1"),
        (lambda d: LBFGS(restarts=0), InputError, "at least 1"),
        (lambda d: InMemory(d, batch_size=0), InputError, "at least 1"),
        (lambda d: dgpax.DeepGP([], dgpax.likelihoods.GaussianNoise()), InputError, "at least one layer"),
    ],
)
def test_errors_say_what_to_do(call, error, words, data):
    with pytest.raises(error, match=words):
        call(data)


@pytest.mark.slow
def test_chunked_inference_is_the_same_fit(data):
    model = dgpax.sparse_gp_regression(data, 5)
    whole = dgpax.fit(model, data, "sparse", engine=LBFGS(max_steps=10))
    chunked = dgpax.fit(model, data, Sparse(chunk_rows=7), engine=LBFGS(max_steps=10))
    np.testing.assert_allclose(whole.report.objective_end, chunked.report.objective_end, rtol=1e-6)


@pytest.mark.parametrize(("largest", "threads"), [(100, 1), (5000, 2)])
def test_blas_has_one_thread_for_small_matrices(largest, threads):
    with threadpool_limits(2, user_api="blas"), suitable_blas_threads(largest):
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {threads}
