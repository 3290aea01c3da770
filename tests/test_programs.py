"""How functions are compiled, and how few programs there are."""

from __future__ import annotations

import gc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.errors import JaxRuntimeError
from numpy.testing import assert_allclose
from programs import compilations
from sklearn.model_selection import cross_val_score

import dgpax
from dgpax import DeepGPRegressor, programs
from dgpax.fits import _kept, _latent
from dgpax.inference import NaturalGradient
from dgpax.parameters import set_values
from dgpax.prediction import _rows


def test_programs_in_programs_are_one():
    inner = programs.compiled(lambda x, factor: factor * jnp.sin(x))
    outer = jax.jit(lambda x: inner(x, 2.0) + inner(jnp.ones(3), 2.0))
    with compilations() as names:
        values = outer(np.arange(3.0))
    assert names == ["jit(<lambda>)"]
    assert_allclose(values, 2.0 * np.sin(np.arange(3.0)) + 2.0 * np.sin(1.0), rtol=1e-15)
    assert_allclose(jax.grad(lambda x: inner(inner(x, 2.0), 1.0).sum())(jnp.zeros(2)), 2.0)
    assert_allclose(jax.vmap(lambda x: inner(x, 3.0))(jnp.ones((2, 3))), 3.0 * np.sin(np.ones((2, 3))), rtol=1e-15)


def test_an_option_that_the_compiler_does_not_know_is_left_out(monkeypatch):
    monkeypatch.setattr(programs, "QUICK", {"xla_of_another_time": True})
    double = programs.compiled(lambda x: 2.0 * x)
    assert_allclose(double(jnp.ones(2)), 2.0)
    assert_allclose(double(jnp.ones(3)), 2.0)


def test_other_errors_of_the_compiler_are_shown(monkeypatch):
    monkeypatch.setattr(programs, "QUICK", {"xla_backend_optimization_level": "none"})
    with pytest.raises(JaxRuntimeError, match="xla_backend_optimization_level"):
        programs.compiled(lambda x: 2.0 * x)(jnp.ones(2))


def test_flags_of_the_environment_come_first(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_of_another_time=false")
    monkeypatch.setattr(programs, "QUICK", {"xla_of_another_time": "none"})
    assert_allclose(programs.compiled(lambda x: 2.0 * x)(jnp.ones(2)), 2.0)


def test_a_cross_validation_compiles_one_training_program(rng):
    x = rng.uniform(size=(300, 2))
    y = np.sin(6.0 * x[:, 0]) + 0.1 * rng.normal(size=300)
    model = DeepGPRegressor(num_layers=2, num_inducing=10, max_steps=25)
    with compilations() as names:
        cross_val_score(model, x, y, cv=5)
    assert names.count("jit(take_steps)") == 1
    with compilations() as names:
        cross_val_score(model, x[:271], y[:271], cv=5)  # folds of 216 and 217 rows, of 54 and 55
    assert "jit(take_steps)" not in names


def test_rows_to_predict_have_few_sizes(rng):
    assert {size for n in range(1, 300) for _, _, size in _rows._chunks(n, 4096)} == {_rows.FEW, 64, 128, 256}
    data = dgpax.dataset(x := rng.uniform(size=(20, 1)), np.sin(6.0 * x))
    fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    at = rng.uniform(size=(11, 1))
    few, more = (dgpax.predict(fitted, at[:n]) for n in (2, 11))
    assert_allclose(few.mean, more.mean[:2], rtol=1e-10)
    assert_allclose(few.variance, more.variance[:2], rtol=1e-10)
    with compilations() as names:
        dgpax.predict(fitted, at[:7])
        dgpax.predict(fitted, np.concatenate([at, at, at]))
    assert not {name for name in names if "row" in name}


def test_what_rows_have_in_common_is_computed_once_per_fit(rng, monkeypatch):
    data = dgpax.dataset(x := rng.uniform(size=(20, 1)), np.sin(6.0 * x))
    model = dgpax.deep_gp(data, 2, 5)
    engine = NaturalGradient(max_steps=5, steps_per_call=5)
    fitted = dgpax.fit(model, data, "variational", engine=engine, progress=False)
    carried, calls = _latent._carried, []
    monkeypatch.setattr(_latent, "_carried", lambda *given: calls.append(given) or carried(*given))
    first = dgpax.predict(fitted, x[:5])
    dgpax.predict(fitted, x[5:9])
    assert len(calls) == 1
    other = dgpax.predict(fitted, x[:5], seed=1)
    assert len(calls) == 2 and not np.allclose(first.mean, other.mean, rtol=1e-9)
    moved = eqx.tree_at(lambda f: f.model, fitted, set_values(fitted.model, {"layers[1].kernel.variance": 2.0}))
    assert not np.allclose(dgpax.predict(moved, x[:5], seed=1).variance, other.variance, rtol=1e-3)
    assert_allclose(dgpax.predict(fitted, x[:5]).mean, first.mean, rtol=1e-13)
    held = len(_kept._KEPT)
    slope = jax.grad(lambda variance: dgpax.predict(_with_variance(fitted, variance), x[:5]).mean.sum())(1.0)
    assert np.isfinite(slope) and len(_kept._KEPT) == held
    del fitted, moved, calls[:], first, other
    gc.collect()
    assert len(_kept._KEPT) < held


def _with_variance(fitted, variance):
    return eqx.tree_at(lambda f: f.model.layers[1].kernel.variance.raw, fitted, variance)
