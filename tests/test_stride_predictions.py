"""What STRIDE infers is asked as every fit is: by row, jointly, as functions, in reports."""

from __future__ import annotations

import itertools
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dgpax
from dgpax import report
from dgpax.distributions import JointMixture
from dgpax.errors import InputError
from dgpax.kernels import RBF, Matern32
from dgpax.prediction import (
    compositional_report,
    draw_functions,
    layer_correlations,
    layer_draws,
    log_density,
    noisy_input_variance,
    predict_layers,
    predict_moments,
    predict_quantiles,
    predict_uncertain,
    predict_uncertain_sampled,
    sample_functions,
    sample_jointly,
    sample_observations,
)
from dgpax.stride import (
    Composition,
    Convolution,
    CrossApproximation,
    FullySparse,
    Initial,
    Injective,
    LocallyScaled,
    Residual,
    Schedule,
    Standard,
    Stride,
)
from dgpax.stride._spread import random_function

N, M, S = 30, 6, 4
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N, 2))
DATA = dgpax.dataset(X, np.stack([np.sin(3 * X[:, 0]), 100 + X[:, 1] ** 2], axis=1))
NEW = RNG.uniform(-1.3, 1.3, (30, 2))


def untrained(data: dgpax.Dataset, num_inducing: int | None, kernel=None) -> Initial:
    """A one-layer GP as it comes, with evenly chosen rows as inducing points."""
    kernel = kernel or Matern32(1.0, 1.0)
    everything = jnp.ones(data.num_rows, bool)
    if num_inducing is None:
        model = dgpax.freeze(dgpax.gp_regression(data, kernel))
        return Initial(dgpax.fit(model, data, progress=False), None, everything, noise_known=True)
    model = dgpax.freeze(dgpax.sparse_gp_regression(data, num_inducing, kernel))
    rows = jnp.arange(num_inducing) * (data.num_rows // num_inducing)
    return Initial(dgpax.fit(model, data, "sparse", progress=False), rows, everything, noise_known=True)


def started(architecture, hidden, data=DATA, num_inducing: int | None = M, num_particles=S):
    """Chains where they begin, which predict like those that have moved."""
    initial = untrained(data, num_inducing)
    method = Stride(num_inducing, num_particles, hidden, schedule=Schedule(num_iterations=0), initial=initial)
    return dgpax.fit(architecture, data, method, progress=False)


@pytest.fixture(scope="module")
def fitted():
    return started(Residual(), Standard())


CASES = {
    "residual": (Residual(), Standard(), M, 2),
    "two residuals": (Residual(2), Standard(), M, 2),
    "composition": (Composition(2), CrossApproximation(10), M, 2),
    "convolution": (Convolution(1), Standard(), M, 2),
    "sparse layers": (Convolution(1), FullySparse(), M, 2),
    "injective": (Injective(1), Standard(), None, 1),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow][name == "residual" :]) for name in CASES])
def test_a_row_is_predicted_by_itself_and_smoothly(name):
    architecture, hidden, num_inducing, num_columns = CASES[name]
    data = dgpax.dataset(X[:, :num_columns], np.asarray(DATA.y))
    fitted, new = started(architecture, hidden, data, num_inducing), NEW[:, :num_columns]
    new = np.concatenate([new, new + 1e-6, X[:3, :num_columns]])
    whole = dgpax.predict_latent(fitted, new)
    at, scale = fitted.inputs(new), np.asarray(whole.stddev)
    components = fitted.latent(at, num_samples=1, seed=0)
    for row in (0, 7, 29, 60):
        alone, own = (
            dgpax.predict_latent(fitted, new[row : row + 1]),
            fitted.latent(at[row : row + 1], num_samples=1, seed=0),
        )
        assert_allclose((alone.mean[0] - whole.mean[row]) / scale[row], 0.0, atol=1e-12)
        assert_allclose(alone.stddev[0] / scale[row], 1.0, rtol=1e-12)
        assert_allclose(own.mean[:, 0], components.mean[:, row], rtol=1e-12, atol=1e-12)
        assert_allclose(own.variance[:, 0], components.variance[:, row], rtol=1e-12, atol=1e-12)
    for moments in (whole.mean, whole.stddev):
        assert np.max(np.abs(moments[30:60] - moments[:30]) / scale[:30]) < 1e-3


def test_copies_of_a_row_have_one_value_in_a_draw(fitted):
    x = NEW[[0, 0, 0, 0, 0, 1, 2, 3]]
    for draws in (sample_jointly(fitted, x, num_samples=8), draw_functions(fitted, 8, num_features=64)(x)):
        assert_allclose(np.ptp(draws[:, :5], axis=1), 0.0, atol=1e-9 * float(np.std(draws[:, 0])))
        assert np.min(np.std(draws[:, 0], axis=0)) > 0.01
    q = fitted.latent_jointly(fitted.inputs(x), "inputs", num_samples=1, seed=0)
    each = np.sqrt(q.variance.mT)
    correlations = q.covariance / (each[..., :, None] * each[..., None, :])
    assert_allclose(correlations[..., 0, 1], 1.0, atol=1e-6)
    assert np.max(np.abs(correlations[..., 0, 5])) < 0.999
    assert_allclose(q.mean[:, 0], q.mean[:, 1], atol=1e-3)


@pytest.mark.slow
def test_observations_of_copies_differ_by_noise_alone(fitted):
    """Within 4 standard errors of a variance of 40 · 19 differences."""
    x = np.repeat(NEW[:1], 20, axis=0)
    noise = np.sqrt(fitted.model.likelihood.noise_variance.value) * fitted.model.scaling.y_scale
    y = np.asarray(sample_functions(fitted, x, 40))
    within = np.sqrt(np.mean(np.var(y, axis=1, ddof=1), axis=0))
    assert_allclose(within, noise, rtol=4 * np.sqrt(0.5 / (40 * 19)))
    apart = np.asarray(sample_observations(fitted, x, num_samples=40))
    assert np.all(np.mean(np.var(apart, axis=1, ddof=1), axis=0) > 1.5 * noise**2)


def test_draws_come_from_every_particle(fitted):
    """A single draw too: of another particle for another seed."""
    position = np.asarray(fitted.target.chains.position[0])[:, 0, 0]
    chosen = [np.asarray(fitted._particles_for(1, seed)[0][0])[0, 0, 0] for seed in range(20)]
    assert set(chosen) == set(position)
    each = np.asarray(fitted._particles_for(2 * S, 3)[0][0])[:, 0, 0]
    assert_array_equal(np.sort(each), np.sort(np.repeat(position, 2)))


def test_functions_can_be_asked_again(fitted):
    functions = draw_functions(fitted, 8, num_features=64)
    first, second = functions(NEW[:8]), functions(NEW[4:12])
    assert first.shape == (8, 8, 2)
    assert_allclose(second[:, :4], first[:, 4:], rtol=1e-9)
    other = draw_functions(fitted, 8, num_features=64, seed=1)(NEW[:8])
    assert not np.allclose(other, first)


@pytest.mark.slow
def test_functions_and_draws_have_the_same_moments(fitted):
    """Bounds: 4 standard errors; random features leave the prior's moments as they are."""
    x, count = NEW[:3], 1000
    drawn = [
        np.asarray(f)[..., 0] for f in (sample_jointly(fitted, x, num_samples=count), draw_functions(fitted, count)(x))
    ]
    for i, j in itertools.combinations_with_replacement(range(3), 2):
        pairs = [f[:, i] * f[:, j] for f in (d - drawn[0].mean(axis=0) for d in drawn)]
        error = np.sqrt(sum(np.var(p) for p in pairs) / count)
        assert abs(np.mean(pairs[0]) - np.mean(pairs[1])) < 4 * error
    error = np.sqrt(sum(np.var(d, axis=0) for d in drawn) / count)
    assert np.all(np.abs(drawn[0].mean(axis=0) - drawn[1].mean(axis=0)) < 4 * error)
    q = fitted.latent_jointly(fitted.inputs(x), "inputs", num_samples=1, seed=3)
    spread = float(jnp.mean(jnp.sqrt(q.variance)))
    assert_allclose(np.std(drawn[0]), float(fitted.model.scaling.y_scale[0]) * spread, rtol=0.5)


def test_local_length_scales_have_no_functions_to_ask_later(key):
    with pytest.raises(InputError, match="sample_functions"):
        random_function(LocallyScaled(RBF(1.0)), key, 2, 8, jnp.ones((3, 2)))


def test_every_question_that_a_fit_is_asked(fitted, tmp_path):
    x = NEW[:5]
    prediction, latent = dgpax.predict(fitted, x), dgpax.predict_latent(fitted, x)
    noise = fitted.model.likelihood.noise_variance.value * fitted.model.scaling.y_scale**2
    assert_allclose(prediction.mean, latent.mean)
    assert_allclose(prediction.variance - latent.variance, np.broadcast_to(noise, (5, 2)), rtol=1e-6)
    moments = predict_moments(fitted, x)
    assert_allclose(moments.mean, prediction.mean)
    assert_allclose(moments.variance, prediction.variance)
    assert_allclose(predict_quantiles(fitted, x, [0.1, 0.9])[1], prediction.quantile(0.9), rtol=1e-6)
    assert_allclose(log_density(fitted, DATA), jnp.sum(dgpax.predict(fitted, X).log_prob(DATA.y), axis=1), atol=0.5)
    with pytest.raises(InputError, match="joint distribution is over"):
        dgpax.predict_jointly(fitted, x, "everything")
    of_layers = predict_layers, layer_draws, compositional_report, noisy_input_variance
    asked = [partial(ask, fitted, x) for ask in of_layers] + [partial(layer_correlations, fitted)]
    asked += [partial(ask, fitted, x, 0.1) for ask in (predict_uncertain, predict_uncertain_sampled)]
    for ask in asked:
        with pytest.raises(InputError, match="posterior is of all layers; got StrideFit"):
            ask()


@pytest.mark.slow
def test_joint_predictions_and_the_page(fitted, tmp_path):
    shapes = {"inputs": (S, 2, 5, 5), "outputs": (S, 5, 2, 2), "both": (S, 5, 2, 5, 2)}
    for over, shape in shapes.items():
        joint = dgpax.predict_jointly(fitted, NEW[:5], over)
        assert isinstance(joint, JointMixture) and joint.components.covariance.shape == shape
    text = report.write(tmp_path / "report.html", fitted, DATA, DATA).read_text("utf-8")
    assert "clipped variances" in text and "num particles" in text and "Stride" in text
