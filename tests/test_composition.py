"""Looking inside deep models: draws of layers, what has collapsed, restarts, and why independent layers collapse."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from parts import fit_of

from dgpax import DeepGP, Fit, GPLayer, dataset, deep_gp, fit, load, plot
from dgpax.errors import InputError
from dgpax.inducing import Points
from dgpax.inference import FitReport, Gradient, Variational
from dgpax.kernels import RBF
from dgpax.layers import Append, LatentVariables
from dgpax.likelihoods import GaussianNoise
from dgpax.means import Identity, Zero
from dgpax.posteriors import Chain, Coupled, GaussianBlock, MeanField, Particles, PointsAsLocations
from dgpax.prediction import (
    compare_restarts,
    compositional_report,
    curvature_given_points,
    layer_draws,
    noisy_input_variance,
    predict_layers,
    predict_uncertain,
)

X = np.linspace(-1, 1, 12)[:, None]
Z = np.linspace(-1.2, 1.2, 6)[:, None]
DATA = dataset(X, np.sin(3 * X))


@pytest.fixture(scope="module")
def fitted() -> Fit:
    """Nobody trained it."""
    layers = (GPLayer(RBF(0.6, 0.5), 1, Identity(), Points(Z)), GPLayer(RBF(0.8), 1, Zero(), Points(Z)))
    empty = {
        "dict[str, Any]": {},
        "str": "",
        "tuple[str, ...]": (),
        "tuple[int, ...]": (),
        "bool": False,
        "int": 0,
        "float": 0.0,
    }
    report = FitReport(**{f.name: empty.get(str(f.type), np.zeros(1)) for f in dataclasses.fields(FitReport)})
    return fit_of(DeepGP(layers, GaussianNoise(0.1)), MeanField.at_prior(layers), report, 1)


def _moved(start, size: float = 0.2):
    """Away from the prior, with coupling where there is some."""
    outputs = start.outputs
    names = {"mean", "root", "coupling", "transition"} & {field.name for field in dataclasses.fields(outputs)}
    moved = {
        name: getattr(outputs, name).value + size * jr.normal(jr.key(i), getattr(outputs, name).shape)
        for i, name in enumerate(sorted(names))
    }
    moved["root"] = jnp.tril(moved["root"])
    return eqx.tree_at(lambda p: p.outputs, start, dataclasses.replace(outputs, **moved))


FAMILIES = {
    "mean-field": lambda layers: MeanField.at_prior(layers, 0.3),
    "fully-coupled": lambda layers: _moved(Coupled.at_prior(layers, "fully-coupled", 0.3)),
    "chain": lambda layers: _moved(Chain.at_prior(layers, 0.3)),
    "points-as-locations": lambda layers: _moved(
        PointsAsLocations.at_prior(layers, inner_scale=0.03, nugget=0.01), 0.01
    ),
    "particles": lambda layers: Particles(tuple(jr.normal(jr.key(i), (2000, 1, len(Z))) for i in range(2))),
}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_draws_of_any_family_are_those_of_its_layers(family, fitted):
    """2,000 draws; the first layer's moments within 5 standard errors at 12 inputs (a false alarm in 40,000)."""
    fitted = dataclasses.replace(fitted, posterior=FAMILIES[family](fitted.model.layers))
    grid = np.linspace(-2, 2, 5)[:, None]
    draws = layer_draws(fitted, X, num_draws=2000, at=(None, grid))
    assert [part.shape for part in draws.functions] == [(2000, 12, 1), (2000, 5, 1)]
    np.testing.assert_array_equal(draws.inputs[1], draws.outputs[0])
    np.testing.assert_array_equal(draws.composition, draws.outputs[1])
    first, last = predict_layers(fitted, X, num_samples=2000)
    for q, values in ((first, draws.outputs[0]), (last, draws.composition)):
        mean, spread = np.asarray(values.mean(axis=0)), np.asarray(values.std(axis=0))
        assert np.all(np.abs(mean - np.asarray(q.mean)) < 5 * np.sqrt(2) * spread / np.sqrt(2000))
        assert np.all(np.abs(spread**2 / np.asarray(q.variance) - 1) < 0.4)
    report = compositional_report(fitted, X, num_draws=50)
    assert report.posterior == type(fitted.posterior).__name__ and not report.collapsed


@pytest.mark.slow
def test_a_draw_is_one_function_wherever_it_is_looked_at(fitted):
    once = layer_draws(fitted, X, num_draws=3)
    np.testing.assert_allclose(once.at[1], np.mean(once.inputs[1], axis=0), atol=1e-12)
    same = layer_draws(fitted, X, num_draws=3, at=(X[:4], np.asarray(once.inputs[1][0])))
    np.testing.assert_allclose(same.functions[0], same.outputs[0][:, :4], atol=1e-4)
    again = layer_draws(fitted, X, num_draws=3, at=(X[:4], np.asarray(same.inputs[1][0])))
    np.testing.assert_allclose(again.functions[1][0], again.outputs[1][0], atol=1e-3)


@pytest.mark.slow
def test_a_collapse_is_said_in_words(fitted):
    layers = fitted.model.layers
    dense = eqx.tree_at(lambda m: m.layers[0].inducing, fitted.model, Points(np.linspace(-1.2, 1.2, 14)[:, None]))
    tight = fit_of(dense, MeanField.at_prior(dense.layers, 1e-5), fitted.report, 1)
    report = compositional_report(tight, X)
    assert report.collapsed == (0,) and not report.layers[1].collapsed
    assert "layer 0 has collapsed to one function" in str(
        report
    ) and "Inner layer(s) 0 collapsed under MeanField" in str(report)
    wide = compositional_report(dataclasses.replace(fitted, posterior=MeanField.at_prior(layers, 1.0)), X)
    assert wide.collapsed == () and wide.warning is None
    assert wide.layers[0].share == pytest.approx(1.0, abs=0.2)
    assert "layer 0 is uncertain" in str(wide)


def _wide_fit(fitted: Fit, signs, order) -> Fit:
    z = np.random.default_rng(0).uniform(-1, 1, (8, 2))
    layers = [
        GPLayer(RBF(0.8), 2, Zero(), Points(z)),
        Append(),
        GPLayer(RBF(1.0), 1, Zero(), Points(np.hstack([z, z]))),
    ]
    start = MeanField.at_prior(tuple(layers), 0.01)
    mean = jnp.asarray(signs)[:, None] * jr.normal(jr.key(3), (2, 8))[jnp.asarray(order)]
    block = GaussianBlock(mean, start.blocks[0].root)
    posterior = MeanField((block, *start.blocks[1:]))
    return fit_of(DeepGP(layers, GaussianNoise(0.1)), posterior, fitted.report, 2)


@pytest.mark.slow
def test_restarts_that_are_mirror_images_are_recognised(fitted):
    x = np.random.default_rng(1).uniform(-1, 1, (20, 2))
    fits = [_wide_fit(fitted, *how) for how in (([1, 1], [0, 1]), ([1, -1], [1, 0]), ([1, 1], [0, 0]))]
    mirrored, other = compare_restarts(fits, x)
    assert mirrored.order == (1, 0) and mirrored.signs == (-1, 1) and mirrored.same_up_to_symmetry
    assert "1 of 2 output(s) mirrored and outputs in another order" in str(mirrored)
    assert not other.same_up_to_symmetry and "another function" in str(other)
    with pytest.raises(InputError, match="at least two fits"):
        compare_restarts(fits[:1], x)


def test_noise_in_the_inputs_of_one_point(fitted):
    """Var f = 1 − Q with one inducing point at 0: its derivative by the input's variance [CU, appendix A]."""
    gamma, x = 0.7, np.array([[0.1], [0.5], [1.3]])
    found = curvature_given_points(RBF(gamma), np.zeros((1, 1)), x)
    d2 = x[:, 0] ** 2
    np.testing.assert_allclose(found.variance[:, 0], 1 - np.exp(-d2 / gamma**2), atol=1e-10)
    wanted = np.exp(-d2 / gamma**2) * (1 / gamma**2 - 2 * d2 / gamma**4)
    np.testing.assert_allclose(found.curvature[:, 0, 0], wanted, atol=1e-8)
    np.testing.assert_allclose(found.slope, 0.0)
    assert np.array_equal(found.curvature[:, 0, 0] < 0, gamma < np.sqrt(2) * x[:, 0])


@pytest.mark.slow
def test_noise_in_the_inputs_is_the_derivative_of_the_exact_moments(fitted):
    layer = GPLayer(RBF(0.8, 1.3), 1, Identity(), Points(Z))
    block = GaussianBlock(jr.normal(jr.key(0), (1, len(Z))), 0.3 * jnp.eye(len(Z))[None])
    one = fit_of(DeepGP(layer, GaussianNoise(0.1)), MeanField((block,)), fitted.report, 1)
    found, s = noisy_input_variance(one, X), 1e-5
    exact = predict_uncertain(one, X, s).variance - 0.1
    np.testing.assert_allclose((exact - found.variance) / s, found.slope[..., 0] + found.curvature[..., 0], atol=1e-3)
    np.testing.assert_allclose(found.total(s), exact, rtol=1e-6)


def test_bad_input(fitted):
    with pytest.raises(InputError, match="one entry per GP layer, 2"):
        layer_draws(fitted, X, at=(X,))
    with pytest.raises(InputError, match=r"shape \(G, 1\) for GP layer 1"):
        layer_draws(fitted, X, at=(None, np.zeros((3, 2))))
    with pytest.raises(InputError, match="at least 2"):
        layer_draws(fitted, X, num_draws=1)
    with pytest.raises(InputError, match="at least one row"):
        compositional_report(fitted, X[:0])
    with pytest.raises(InputError, match="GP layer"):
        noisy_input_variance(fitted, X, layer=2)
    latent = DeepGP([LatentVariables(1), *fitted.model.layers], GaussianNoise(0.1))
    with pytest.raises(InputError, match="latent variables"):
        layer_draws(dataclasses.replace(fitted, model=latent), X)


@pytest.mark.slow
def test_pictures(fitted):
    import matplotlib

    matplotlib.use("Agg")
    axes = plot.layers(layer_draws(fitted, X, num_draws=4), DATA)
    assert [ax.get_title() for ax in axes] == ["layer 0", "layer 1", "composition"]
    assert [len(ax.lines) for ax in axes] == [4, 4, 4]
    with pytest.raises(InputError, match="needs 3 axes"):
        plot.layers(layer_draws(fitted, X, num_draws=4), axes=axes[:2])
    least = np.asarray(plot.variance_curvature((3, 8))[2].lines[0].get_ydata())
    assert least[0] < least[1] < 0


@pytest.mark.slow
@pytest.mark.parametrize("word", ["mean-field", "stripes-and-arrow", "fully-coupled", "chain", "points-as-locations"])
def test_the_report_on_a_real_dataset(word):
    train, _ = load("energy").split(0)
    some = dataset(np.asarray(train.x)[:200], np.asarray(train.y)[:200])
    fitted = fit(deep_gp(some, 2, 10, width=2), some, Variational(word), engine=Gradient(max_steps=20), progress=False)
    report = compositional_report(fitted, some.x, num_draws=20)
    assert len(report.layers) == 2 and all(np.isfinite(layer.share) for layer in report.layers)
    draws = fitted.posterior.layerwise(jr.key(0), (20,))
    again = compositional_report(dataclasses.replace(fitted, posterior=draws), some.x, num_draws=20)
    assert again.posterior == type(draws).__name__


@pytest.mark.slow
def test_a_quick_run_of_the_benchmark(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))  # benchmarks isn't installed
    from benchmarks import compositional, report

    words = ["--quick", "--posteriors", "mean-field", "--parts", "table", "three-layers"]
    path = compositional.main([*words, "--results", str(tmp_path), "--pictures", str(tmp_path)])
    records = json.loads(path.read_text("utf-8"))["records"]
    assert {record["kind"] for record in records} == {"table", "three layers"}
    assert all(np.isfinite(record["bound"]) for record in records)
    assert len(list(tmp_path.glob("*.png"))) == 3
    assert "| sin(7 exp(x)) | DSVI, in the paper (± sd) | 13.43 ± 8.03 |" in report.render(tmp_path)
