"""Fits that run together are the fits that run alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import dgpax
from dgpax.data import InMemory
from dgpax.errors import InputError
from dgpax.inference import LBFGS, Gradient, NaturalGradient, StopWhenStale


def _data(seed: int, rows: int = 30):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    return dgpax.dataset(x, np.sin(2 * x[:, :1]) + 0.1 * rng.normal(size=(rows, 1)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "batch_size"), [(NaturalGradient(max_steps=7, steps_per_call=5), None), (Gradient(max_steps=7), 8)]
)
def test_together_is_alone(engine, batch_size):
    datasets = [_data(seed) for seed in range(3)]
    models = [dgpax.deep_gp(data, 2, 5) for data in datasets]
    feeds = [InMemory(data, batch_size) for data in datasets]
    together = dgpax.fit_many(models, feeds, engine=engine, seeds=[4, 5, 6], progress=False)
    alone = dgpax.fit(models[1], feeds[1], "variational", engine=engine, seed=5, progress=False)
    assert together[1].report.steps == alone.report.steps == 7
    np.testing.assert_allclose(together[1].report.history, alone.report.history, rtol=1e-8)
    for a, b in zip(*(jax.tree.leaves((f.model, f.posterior)) for f in (together[1], alone)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


@pytest.mark.slow
def test_exact_fits_together():
    datasets = [_data(seed) for seed in range(2)]
    models = [dgpax.gp_regression(data) for data in datasets]
    together = dgpax.fit_many(models, datasets, "exact", engine=LBFGS(), progress=False)
    for fitted, model, data in zip(together, models, datasets, strict=True):
        alone = dgpax.fit(model, data, "exact", progress=False)
        np.testing.assert_allclose(fitted.report.objective_end, alone.report.objective_end, atol=1e-4)


@pytest.mark.slow
def test_each_stops_by_its_own_rule():
    data = _data(0)
    models = [dgpax.deep_gp(data, 2, 5)] * 2
    scores = [iter([1.0, 3.0, *[0.0] * 50]), iter(np.arange(50.0))]

    def rule(index):
        return StopWhenStale(lambda target: next(scores[index]), every=5, patience=2)

    engine = NaturalGradient(max_steps=40, steps_per_call=5)
    first, second = dgpax.fit_many(models, [data] * 2, engine=engine, stopping=rule, progress=False)
    assert (first.report.steps, second.report.steps) == (20, 40)
    assert "monitored score" in first.report.stopped_because
    alone = dgpax.fit(models[0], data, "variational", engine=NaturalGradient(max_steps=10), progress=False)
    for a, b in zip(jax.tree.leaves(first.posterior), jax.tree.leaves(alone.posterior), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)


def test_unequal_shapes_are_refused():
    datasets = [_data(0), _data(1, rows=31)]
    models = [dgpax.deep_gp(data, 2, 5) for data in datasets]
    with pytest.raises(InputError, match="fit 1 differs from fit 0"):
        dgpax.fit_many(models, datasets, progress=False)
    with pytest.raises(InputError, match="as many models as datasets"):
        dgpax.fit_many(models, datasets[:1], progress=False)


@pytest.mark.slow
def test_rows_do_not_matter_beyond_chunks():
    from dgpax.objectives import elbo
    from dgpax.posteriors import MeanField

    data = _data(3, rows=23)
    model = dgpax.deep_gp(data, 2, 5)
    posterior = MeanField.at_prior(model.layers, inner_scale=0.3)
    scaled = model.to_model_units(data)

    @jax.jit
    def both(posterior):
        def value(q, chunk):
            return elbo(model, q, scaled, key=jr.key(1), num_samples=3, chunk_rows=chunk).total

        return [jax.value_and_grad(value)(posterior, chunk) for chunk in (None, 5)]

    (whole, slope), (chunked, chunked_slope) = both(posterior)
    np.testing.assert_allclose(chunked, whole, rtol=1e-12)
    for a, b in zip(*(jax.tree.leaves(tree) for tree in (slope, chunked_slope)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10 * (1 + float(jnp.max(jnp.abs(a)))))
