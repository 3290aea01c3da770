"""f at uncertain inputs: exact moments against quadrature and samples, objectives, fits, predictions, refusals."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from reference import expectations as reference

import dgpax
from dgpax import DeepGP, GPLayer, means
from dgpax.data import Dataset
from dgpax.distributions import Gaussian, Mixture
from dgpax.errors import InputError, MissingRuleError
from dgpax.inducing import Points
from dgpax.inference import NaturalGradient, NoisyInputs
from dgpax.kernels import LMC, RBF, Linear, Matern32
from dgpax.likelihoods import BernoulliLogit, GaussianNoise
from dgpax.objectives import elbo, sampled_uncertain_elbo, uncertain_elbo
from dgpax.parameters import cast, find
from dgpax.posteriors import ExactPosterior, GaussianBlock, MeanField
from dgpax.prediction import predict_uncertain, predict_uncertain_sampled
from dgpax.propagate import outputs_of
from dgpax.uncertain import sampled_outputs, uncertain_marginal

P, M, N, D = 2, 5, 4, 2
RNG = np.random.default_rng(3)
Z, X, S = RNG.normal(size=(M, D)), RNG.normal(size=(N, D)), RNG.uniform(0.01, 0.4, size=(N, D))
INPUTS = Gaussian(jnp.asarray(X), jnp.asarray(S))
DATA = Dataset(jnp.asarray(X), jnp.asarray(RNG.normal(size=(N, P))))
SLOPES = means.Linear(jnp.asarray(RNG.normal(size=(D, P))), jnp.asarray([3.0, -1.0]))
SEPARATE = RBF(jnp.asarray([[0.9, 1.4], [1.8, 1.1]]), jnp.asarray([1.3, 0.6]))
LAYERS = {
    "zero": lambda: GPLayer(RBF(1.1, 1.3), P, inducing=Points(Z)),
    "identity-separate": lambda: GPLayer(SEPARATE, P, means.Identity(), Points(jnp.stack([Z, Z[::-1] + 0.2]))),
    "linear-sum": lambda: GPLayer(RBF(1.1) + Linear(0.3), P, SLOPES, Points(Z)),
}


def _posterior():
    root = jnp.tril(jr.normal(jr.key(5), (P, M, M)))
    return MeanField((GaussianBlock(jr.normal(jr.key(4), (P, M)), root),))


def _exact(layer):
    return ExactPosterior.condition(DeepGP(layer, GaussianNoise(0.1)), DATA)


@eqx.filter_jit
def _closed_form(layer, posterior, x):
    return uncertain_marginal(0, layer, posterior, x, posterior.begin((layer,)))


@eqx.filter_jit
def _at_known(layer, posterior, x):
    return outputs_of(0, layer, posterior, x, posterior.begin((layer,))).marginal()


def _by_quadrature(layer, posterior):
    """The law of total variance over Gauss-Hermite nodes of every row."""
    nodes, weights = zip(*(reference.grid(m, v, num=40) for m, v in zip(X, S, strict=True)), strict=True)
    q = _at_known(layer, posterior, jnp.asarray(np.stack(nodes, axis=1)))
    w = np.stack(weights, axis=1)[..., None]
    mean = np.sum(w * q.mean, axis=0)
    return mean, np.sum(w * (q.variance + (q.mean - mean) ** 2), axis=0)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("family", ["MeanField", pytest.param("Exact", marks=pytest.mark.slow)])
def test_the_moments_are_exact(name, family):
    layer = LAYERS[name]()
    posterior = _posterior() if family == "MeanField" else _exact(layer)
    q = _closed_form(layer, posterior, INPUTS)
    mean, variance = _by_quadrature(layer, posterior)
    np.testing.assert_allclose(q.mean, mean, atol=1e-9)
    np.testing.assert_allclose(q.variance, variance, atol=1e-9)
    certain = _closed_form(layer, posterior, Gaussian(INPUTS.mean, jnp.zeros((N, D))))
    known = _at_known(layer, posterior, INPUTS.mean)
    np.testing.assert_allclose(certain.mean, known.mean, atol=1e-10)
    np.testing.assert_allclose(certain.variance, known.variance, atol=1e-10)


@pytest.mark.slow
def test_samples_agree_within_four_standard_errors():
    layer, posterior, size = LAYERS["linear-sum"](), _posterior(), 20_000

    @eqx.filter_jit
    def sample(key):
        carry = posterior.begin((layer,))
        return Mixture(sampled_outputs((layer,), posterior, INPUTS, carry, key=key, num_samples=size).marginal())

    q, mixture = _closed_form(layer, posterior, INPUTS), sample(jr.key(0))
    components = mixture.components
    assert components.mean.shape == (size, N, P)
    error = np.std(components.mean, axis=0) / size**0.5
    np.testing.assert_array_less(np.abs(mixture.mean - q.mean), 4 * error)
    squares = components.variance + (components.mean - q.mean) ** 2
    error = np.std(squares, axis=0) / size**0.5
    np.testing.assert_array_less(np.abs(np.mean(squares, axis=0) - q.variance), 4 * error)
    np.testing.assert_allclose(mixture.variance, q.variance, rtol=0.1)


def test_float32():
    layer, posterior = LAYERS["linear-sum"](), _posterior()
    low = _closed_form(cast(layer, jnp.float32), cast(posterior, jnp.float32), _in_float32(INPUTS))
    high = _closed_form(layer, posterior, INPUTS)
    assert low.mean.dtype == low.variance.dtype == jnp.float32
    np.testing.assert_allclose(low.mean, high.mean, atol=1e-4)
    np.testing.assert_allclose(low.variance, high.variance, rtol=1e-4)


@pytest.mark.slow
def test_crowded_inducing_points_in_float32_stay_accurate():
    """Kuu is nearly singular; the variance through the inputs is computed in float64 all the same."""
    z, x = jnp.linspace(-2, 2, 20)[:, None], Gaussian(jnp.linspace(-2, 2, 7)[:, None], jnp.full((7, 1), 0.02))
    layer = GPLayer(RBF(0.7), 1, inducing=Points(z))
    posterior = MeanField((GaussianBlock(jr.normal(jr.key(0), (1, 20)), 0.3 * jnp.eye(20)[None]),))
    layer, posterior, x = cast(layer, jnp.float32), cast(posterior, jnp.float32), _in_float32(x)
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    grid = x.mean + x.stddev * jnp.asarray(nodes, jnp.float32)[:, None, None]
    known, w = _at_known(layer, posterior, grid), (weights / weights.sum())[:, None, None]
    mean = np.sum(w * known.mean, axis=0)
    variance = np.sum(w * (known.variance + (known.mean - mean) ** 2), axis=0)
    np.testing.assert_allclose(_closed_form(layer, posterior, x).variance, variance, atol=3e-3)


def _in_float32(tree):
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), tree)


def _model(kernel=None, likelihood=None):
    layer = LAYERS["zero"]() if kernel is None else GPLayer(kernel, P, inducing=Points(Z))
    return DeepGP(layer, likelihood or GaussianNoise(0.2))


@pytest.mark.slow
def test_the_bound_is_what_samples_estimate():
    model, posterior, size = _model(), _posterior(), 4000
    bound = eqx.filter_jit(uncertain_elbo)
    exact = bound(model, posterior, DATA, INPUTS, input_kl=2.0)

    @eqx.filter_jit
    @jax.vmap
    def estimate(key):
        return sampled_uncertain_elbo(model, posterior, DATA, INPUTS, key=key, input_kl=2.0)

    draws = estimate(jr.split(jr.key(1), size))
    np.testing.assert_allclose(draws.kl, exact.kl)
    error = float(np.std(draws.total)) / size**0.5
    assert abs(float(np.mean(draws.total)) - float(exact.total)) < 4 * error
    certain = bound(model, posterior, DATA, Gaussian(INPUTS.mean, jnp.zeros((N, D))), input_kl=2.0)
    np.testing.assert_allclose(certain.total + 2.0, eqx.filter_jit(elbo)(model, posterior, DATA).total, rtol=1e-10)


@pytest.mark.slow
def test_the_gradient_of_the_bound():
    """By a length scale, and by the variances of the inputs, against central differences."""

    @jax.jit
    def bound(lengthscale, variance):
        layer = GPLayer(RBF(lengthscale) + Linear(0.3), P, SLOPES, Points(Z))
        model = DeepGP(layer, GaussianNoise(0.2))
        return uncertain_elbo(model, _posterior(), DATA, Gaussian(INPUTS.mean, variance)).total

    lengthscale, variance, step = jnp.asarray(1.1), INPUTS.variance, 1e-5
    slope, slopes = jax.jit(jax.grad(bound, (0, 1)))(lengthscale, variance)
    difference = bound(lengthscale + step, variance) - bound(lengthscale - step, variance)
    np.testing.assert_allclose(slope, difference / (2 * step), rtol=1e-6)
    difference = bound(lengthscale, variance + step) - bound(lengthscale, variance - step)
    np.testing.assert_allclose(jnp.sum(slopes), difference / (2 * step), rtol=1e-6)


def test_a_minibatch_has_the_variances_of_its_rows():
    """At the start q(x_n) is p(x_n)."""
    rows = jnp.asarray([2, 0])
    batch = dataclasses.replace(DATA.take(rows), rows=rows, scale=2.0)
    model, method = _model(), NoisyInputs(S, _posterior())
    target = method.target(model, DATA)
    terms = eqx.filter_jit(method.terms)(target, batch, jr.key(0))
    x = Gaussian(INPUTS.mean[rows], INPUTS.variance[rows])
    wanted = eqx.filter_jit(uncertain_elbo)(model, _posterior(), batch, x)
    np.testing.assert_allclose(terms.total, wanted.total, rtol=1e-12)


@pytest.fixture(scope="module")
def noisy():
    """A sine seen at inputs that are off by 0.3, in units far from the model's."""
    rng = np.random.default_rng(0)
    true = rng.uniform(-3, 3, size=(120, 1))
    y = np.sin(2 * true) + 0.05 * rng.normal(size=true.shape)
    return dgpax.dataset(500 + 100 * (true + 0.3 * rng.normal(size=true.shape)), 20 * y), np.array([30.0**2])


@pytest.fixture(scope="module")
def fitted(noisy):
    data, input_variance = noisy
    layer = GPLayer(RBF(0.5), inducing=Points(jnp.linspace(-2, 2, 10)[:, None]))
    model = DeepGP(layer, GaussianNoise(0.1), dgpax.data.standardise(data))
    return dgpax.fit(model, data, NoisyInputs(input_variance), engine=NaturalGradient(max_steps=400))


@pytest.mark.slow
def test_knowing_the_errors_of_the_inputs_explains_the_noise(fitted, noisy):
    """Without them all scatter is noise of y; with them little is left, and the function is found."""
    data, _ = noisy
    ignorant = dgpax.fit(fitted.model, data, NoisyInputs(0.0), engine=NaturalGradient(max_steps=400))
    known, unknown = (float(find(one.model)["likelihood.noise_variance"].value) for one in (fitted, ignorant))
    assert known < 0.5 * unknown
    x = np.linspace(250, 750, 40)[:, None]
    truth = 20 * np.sin(2 * (x - 500) / 100)
    errors = [np.mean((np.asarray(dgpax.predict(one, x).mean) - truth) ** 2) for one in (fitted, ignorant)]
    assert errors[0] < 0.5 * errors[1] and fitted.report.objective_end > ignorant.report.objective_end


@pytest.mark.slow
def test_predictions_at_uncertain_inputs(fitted):
    x, size = np.linspace(250, 750, 9)[:, None], 4000
    variances = np.linspace(0.0, 2500.0, 9)[:, None]
    exact = predict_uncertain(fitted, x, variances)
    sampled = predict_uncertain_sampled(fitted, x, variances, num_samples=size, seed=1)
    np.testing.assert_allclose(exact.mean[0], dgpax.predict(fitted, x).mean[0], rtol=1e-8)
    np.testing.assert_allclose(exact.variance[0], dgpax.predict(fitted, x).variance[0], rtol=1e-8)
    np.testing.assert_array_less(np.abs(exact.mean - sampled.mean), 4 * sampled.stddev / size**0.5 + 1e-6)
    np.testing.assert_allclose(exact.stddev, sampled.stddev, rtol=0.1)
    np.testing.assert_allclose(sampled.cdf(sampled.quantile(0.3)), 0.3, atol=1e-8)
    with pytest.raises(InputError, match="needs one number, one per column"):
        predict_uncertain(fitted, x, np.ones(3))
    with pytest.raises(InputError, match="squared standard deviations"):
        predict_uncertain(fitted, x, -1.0)


def test_what_has_no_closed_form_says_what_to_do():
    posterior = _posterior()
    with pytest.raises(MissingRuleError, match=r"@expansion.register\(Points, Matern32\)"):
        uncertain_elbo(_model(Matern32()), posterior, DATA, INPUTS)
    with pytest.raises(InputError, match="depend on each other"):
        uncertain_elbo(_model(LMC(RBF(), jnp.eye(2))), posterior, DATA, INPUTS)
    with pytest.raises(InputError, match="sampled_uncertain_elbo"):
        uncertain_elbo(_model(likelihood=BernoulliLogit()), posterior, DATA, INPUTS)
    with pytest.raises(InputError, match="needs one number, one per column"):
        NoisyInputs(np.ones(3)).target(_model(), DATA)
    with pytest.raises(InputError, match="at least 1"):
        NoisyInputs(np.ones(2), num_samples=0)


def test_samples_go_where_closed_forms_do_not():
    layers = (GPLayer(Matern32(), D, means.Identity(), Points(Z)), GPLayer(Matern32(), P, inducing=Points(Z)))
    model, labels = DeepGP(layers, BernoulliLogit()), dataclasses.replace(DATA, y=(DATA.y > 0).astype(float))
    method = NoisyInputs(0.1, num_samples=3)
    terms = eqx.filter_jit(method.terms)(method.target(model, labels), labels, jr.key(0))
    assert np.isfinite(terms.total) and float(terms.log_likelihood) < 0
