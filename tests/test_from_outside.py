"""Parts that nobody told the package about: a layer, a kernel, a likelihood, a posterior, an objective."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dgpax
from dgpax import DeepGP, GPLayer
from dgpax.inducing import OutputPoints, Points
from dgpax.inference import SGHMC, Gradient, NaturalGradient, Sampling, Variational
from dgpax.kernels import RBF, AbstractKernel, AbstractMultiOutputKernel
from dgpax.layers import AbstractLayer, Append
from dgpax.likelihoods import AbstractQuadratureLikelihood, GaussianNoise
from dgpax.linalg import einsum, gaussian_expectation, matmul
from dgpax.means import Identity
from dgpax.objectives import AbstractObjective, elbo
from dgpax.parameters import AbstractParameter, Positive, Real, as_positive, as_real
from dgpax.posteriors import AbstractLayerwise, Carry, GaussianBlock, MeanField, Moments, whitening_roots
from dgpax.prediction import draw_functions, log_density, predict_layers, sample_jointly, sample_observations

X = np.linspace(-1.0, 1.0, 24)[:, None]
Z = np.linspace(-1.2, 1.2, 6)[:, None]
DATA = dgpax.dataset(X, np.sin(4.0 * X) + 0.05 * np.cos(40.0 * X))
TWO = dgpax.dataset(X, np.hstack([np.sin(4.0 * X), -np.sin(4.0 * X)]))


class Doubling(AbstractLayer):
    def apply(self, given, draw):
        return 2.0 * given.last


class Residual(AbstractLayer):
    """f(h) + h, with a GP of its own."""

    gp: GPLayer

    def apply(self, given, draw):
        return given.last + draw(given.last)

    @property
    def random(self):
        return self.gp


class Scaled(AbstractMultiOutputKernel):
    """B_pq k(x, y)."""

    base: AbstractKernel
    factor: AbstractParameter = eqx.field(converter=as_real)

    @property
    def num_outputs(self):
        return self.factor.shape[0]

    def between(self):
        return matmul(self.factor.value, self.factor.value.T)

    def cross(self, x, y):
        return einsum("pq,...nm->...pnqm", self.between(), self.base.cross(x, y)[..., 0, :, :])

    def diag(self, x):
        return jnp.diagonal(self.between())[:, None] * self.base.diag(x)

    def over_outputs(self, x):
        return einsum("pq,...n->...npq", self.between(), self.base.diag(x)[..., 0, :])


class Logistic(AbstractQuadratureLikelihood):
    """Noise with a logistic distribution."""

    scale: AbstractParameter = eqx.field(converter=as_positive, default=0.1)
    quadrature_order: int = eqx.field(static=True, default=20)

    def log_density(self, f, y):
        r = (y - f) / self.scale.value
        return -r - 2.0 * jax.nn.softplus(-r) - jnp.log(self.scale.value)

    def predictive_log_density(self, mean, variance, y):
        return jnp.log(gaussian_expectation(lambda f: jnp.exp(self.log_density(f, y)), mean, variance, 20))

    def conditional_mean(self, f):
        return f

    def conditional_variance(self, f):
        return jnp.full_like(f, jnp.pi**2 / 3.0) * self.scale.value**2

    def predictive_mean(self, q):
        return q.mean

    def predictive_variance(self, q):
        return q.variance + self.conditional_variance(q.mean)

    def sample(self, key, f):
        return f + self.scale.value * jax.random.logistic(key, f.shape, f.dtype)


class Diagonals(AbstractLayerwise):
    """Every inducing output by itself: N(mean, stddev²), one block per layer."""

    means: tuple[AbstractParameter, ...]
    stddevs: tuple[AbstractParameter, ...]

    @classmethod
    def of(cls, layers):
        shapes = [(layer.num_blocks, layer.own_inducing().num_inducing) for layer in layers]
        return cls(tuple(Real(jnp.zeros(s)) for s in shapes), tuple(Positive(0.1 * jnp.ones(s)) for s in shapes))

    def begin(self, layers):
        return Carry(whitening_roots(layers))

    def inducing(self, index, layer, carry):
        return layer.own_inducing()

    def marginal(self, index, projection, carry):
        moments = self.moments(index, projection.A, carry)
        variance = projection.residual + jnp.sum(moments.spread**2, axis=-1)
        return dgpax.distributions.Gaussian(moments.mean.mT, jnp.broadcast_to(variance, moments.mean.shape).mT)

    def moments(self, index, A, carry):
        m, s = self.means[index].value, self.stddevs[index].value
        A = jnp.broadcast_to(A, (*A.shape[:-3], len(m), *A.shape[-2:]))
        return Moments(matmul(A, m[..., None])[..., 0], A * s[:, None, :])

    def latents(self, index, batch):
        raise TypeError("There are none.")

    def kl(self, layers, carry):
        parts = zip(self.means, self.stddevs, strict=True)
        return sum(0.5 * jnp.sum(m.value**2 + s.value**2 - 1.0 - 2.0 * jnp.log(s.value)) for m, s in parts)


class Tempered(AbstractObjective):
    """The ELBO with half its KL."""

    def terms(self, target, data, key):
        terms = elbo(target.model, target.posterior, data, key=key)
        return eqx.tree_at(lambda t: t.kl, terms, 0.5 * terms.kl)


def _slow(word):
    return pytest.param(word, marks=pytest.mark.slow)


def _inner(inputs: int = 1, outputs: int = 1) -> GPLayer:
    z = np.concatenate([Z] * inputs, axis=1)
    return GPLayer(RBF(np.full(inputs, 0.8)), outputs, Identity(), Points(z))


def _last(inputs: int = 1, outputs: int = 1) -> GPLayer:
    return GPLayer(RBF(np.full(inputs, 1.2)), outputs, inducing=Points(np.concatenate([Z] * inputs, axis=1)))


def _everything(fitted, data, path, own=()):
    """Predictions, draws and densities; all the same after saving and loading. As many draws everywhere: one
    program."""

    def asked(fit):
        found = [dgpax.predict_latent(fit, X, num_samples=3).mean, sample_jointly(fit, X, num_samples=3)]
        found += [log_density(fit, data, num_samples=3), sample_observations(fit, X, num_samples=3)]
        return [np.asarray(part) for part in [*found, *(q.mean for q in predict_layers(fit, X, num_samples=3))]]

    first = asked(fitted)
    assert all(np.isfinite(part).all() for part in first)
    dgpax.save(fitted, path / "model.dgpax", own=own)
    for before, after in zip(first, asked(dgpax.load_model(path / "model.dgpax", own=own)), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("word", ["mean-field", _slow("stripes-and-arrow"), _slow("chain")])
def test_a_layer(word, tmp_path):
    model = DeepGP((Doubling(), Residual(_inner()), Doubling(), _last()), GaussianNoise(0.1))
    fitted = dgpax.fit(model, DATA, Variational(word), engine=NaturalGradient(max_steps=60), progress=False)
    assert fitted.report.objective_end > fitted.report.objective_start
    _everything(fitted, DATA, tmp_path, (Doubling, Residual))
    assert np.isfinite(draw_functions(fitted, 2)(X)).all()


PLAIN = DeepGP(GPLayer(RBF(0.4), inducing=Points(Z / 2)), GaussianNoise(0.1))
DOUBLED = DeepGP((Doubling(), GPLayer(RBF(0.8), inducing=Points(Z))), GaussianNoise(0.1))
"""The same model: half the length scale and half the inducing locations do what doubling in front does."""


def test_a_layer_is_what_it_says(rng):
    block = GaussianBlock(rng.normal(size=(1, 6)), np.tril(rng.normal(size=(1, 6, 6))))
    pairs = (PLAIN, MeanField((block,))), (DOUBLED, MeanField((None, block)))
    bounds = [eqx.filter_jit(elbo)(*pair, DATA, key=jax.random.key(0)).total for pair in pairs]
    np.testing.assert_allclose(bounds[0], bounds[1], rtol=1e-10)


@pytest.mark.slow
def test_a_layer_does_what_it_says():
    """Adam would move length scales and locations by other amounts in the two models: they are held."""
    models = PLAIN, DOUBLED
    engine = NaturalGradient(max_steps=20)
    ends = [dgpax.fit(dgpax.freeze(model), DATA, "variational", engine=engine, progress=False) for model in models]
    np.testing.assert_allclose(dgpax.predict(ends[0], X).mean, dgpax.predict(ends[1], X).mean, atol=1e-10)


SKIPS = (_inner(), Append(), _inner(2, 2), Append(source=0), _last(3))


@pytest.mark.parametrize("word", ["stripes-and-arrow", _slow("mean-field"), _slow("sghmc")])
def test_skips_from_the_inputs_and_from_an_earlier_layer(word, tmp_path):
    model = DeepGP(SKIPS, GaussianNoise(0.1))
    if word == "sghmc":
        engine = SGHMC(num_warmup=40, spacing=2, num_draws=5)
        fitted = dgpax.fit(model, DATA, Sampling(num_draws=5), engine=engine, progress=False)
    else:
        fitted = dgpax.fit(model, DATA, Variational(word), engine=NaturalGradient(max_steps=60), progress=False)
        assert fitted.report.objective_end > fitted.report.objective_start
    _everything(fitted, DATA, tmp_path)


DEPTHS = pytest.mark.parametrize(
    "layers", [(_last(),), pytest.param((_inner(), _last()), marks=pytest.mark.slow)], ids=["shallow", "deep"]
)


def test_a_source_must_lie_ahead():
    model = DeepGP((_inner(), Append(source=3), _last(2)), GaussianNoise(0.1))
    with pytest.raises(dgpax.errors.InputError, match="a layer before it"):
        dgpax.fit(model, DATA, "variational", progress=False)


def test_a_multi_output_kernel(tmp_path):
    kernel = Scaled(RBF(0.5), np.array([[1.0, 0.0], [-0.9, 0.3]]))
    fitted = _fit_of_two(kernel, Points(Z))
    assert fitted.report.objective_end > fitted.report.objective_start
    _everything(fitted, TWO, tmp_path, (Scaled,))


def _fit_of_two(kernel, inducing):
    model = DeepGP(GPLayer(kernel, 2, inducing=inducing), GaussianNoise(0.1))
    return dgpax.fit(model, TWO, "variational", engine=NaturalGradient(max_steps=40), progress=False)


@pytest.mark.slow
def test_a_multi_output_kernel_with_points_of_every_output():
    """`Points` for all outputs at once are these."""
    kernel = Scaled(RBF(0.5), np.array([[1.0, 0.0], [-0.9, 0.3]]))
    fits = [_fit_of_two(kernel, inducing) for inducing in (Points(Z), OutputPoints(Z, 2))]
    np.testing.assert_allclose(dgpax.predict(fits[0], X).mean, dgpax.predict(fits[1], X).mean, atol=1e-10)


@DEPTHS
def test_a_likelihood(layers, tmp_path):
    model = DeepGP(layers, Logistic())
    fitted = dgpax.fit(model, DATA, "variational", engine=NaturalGradient(max_steps=60), progress=False)
    assert fitted.report.objective_end > fitted.report.objective_start
    _everything(fitted, DATA, tmp_path, (Logistic,))


@DEPTHS
def test_a_posterior(layers, tmp_path):
    method = Variational(Diagonals.of(layers))
    fitted = dgpax.fit(DeepGP(layers, GaussianNoise(0.1)), DATA, method, engine=Gradient(max_steps=100), progress=False)
    assert fitted.report.objective_end > fitted.report.objective_start
    _everything(fitted, DATA, tmp_path, (Diagonals,))


@DEPTHS
def test_an_objective(layers, tmp_path):
    model = DeepGP(layers, GaussianNoise(0.1))
    method = Variational(objective=Tempered())
    fitted = dgpax.fit(model, DATA, method, engine=NaturalGradient(max_steps=40), progress=False)
    assert fitted.report.objective_end > fitted.report.objective_start
    _everything(fitted, DATA, tmp_path)
