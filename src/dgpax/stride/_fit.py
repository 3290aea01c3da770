"""What STRIDE leaves: an equal mixture of GPs, one per particle of the hidden layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..distributions import Gaussian, GaussianOverBoth, GaussianOverInputs
from ..errors import InputError
from ..fits import NUM_FEATURES, AbstractFit, FitReport
from ..inference import AbstractMethod
from ..layers import GPLayer
from ..likelihoods import GaussianNoise
from ..model import DeepGP
from ..parameters import fixed
from ..programs import compiled
from ..propagate import even_normals
from ..typing import Array, Float, Int, Key, PyTree, RandomKey
from ._engine import StrideTarget
from ._initial import Initial
from ._problem import Posterior, largest_divisor, suitable_particles_at_once
from ._spread import by_row, pathwise, smallest_root, together
from ._top import TopPosterior

REPORT_ROWS = 2000
KEY_OF_DRAWS = 2**31 + 2


class StrideFit(AbstractFit):
    """Particles of the hidden layers, the inducing points of the top layer, and what happened [STRIDE, eq. 5].

    All rows share the numbers by which hidden layers are drawn at new inputs, given their values at the data.
    """

    method: Any
    """The `Stride` that made it."""
    target: StrideTarget
    tops: TopPosterior
    """The top layer given each particle."""
    report: FitReport = eqx.field(static=True)
    num_inputs: int = eqx.field(static=True)
    input_names: tuple[str, ...] = eqx.field(static=True)

    @property
    def model(self):
        """A GPLayer with the kernel of every layer; how a layer uses the one below is the architecture's."""
        return model_of(self.target)

    @property
    def initial(self) -> Initial:
        """The one-layer GP that gave kernel and noise; `initial.fitted` predicts on its own."""
        return self.target.initial

    @property
    def inducing_rows(self) -> Int[Array, " M"] | None:
        """The rows of the data that are inducing points; None for the standard deep GP."""
        return self.target.posterior.top.inducing

    def more(self, num_iterations: int) -> AbstractMethod:
        """The method that goes on from here: `fit(architecture, data, fitted.more(10))`, with the same seed, gives what
        one fit with all iterations gives, bit for bit."""
        schedule = replace(self.method.schedule.resolved(), num_iterations=num_iterations)
        return replace(self.method, start=self.target, schedule=schedule)

    def latent(self, x, *, num_samples, seed):
        widths = self.target.hidden_widths
        z = even_normals(self.target.chains.num_particles, sum(widths), seed).reshape(-1, len(widths), widths[0])
        mean, variance = _by_row(self.target.posterior, self._particles, jnp.asarray(z, x.dtype), x)
        return Gaussian(mean, variance)

    def latent_jointly(self, x, over, *, num_samples, seed):
        if over == "outputs":
            return self.latent(x, num_samples=num_samples, seed=seed)
        if over not in ("inputs", "both"):
            raise InputError(f'A joint distribution is over "outputs", "inputs" or "both"; got {over!r}.')
        mean, covariance = _together(self.target.posterior, self._particles, x, _key(seed))
        S, N, P = mean.shape
        if over == "inputs":
            return GaussianOverInputs(mean, jnp.broadcast_to(covariance[:, None], (S, P, N, N)))
        eye = jnp.eye(P, dtype=mean.dtype)
        return GaussianOverBoth(mean, covariance[:, :, None, :, None] * eye[:, None, :])

    def draws(self, x, num_draws, *, seed):
        """At rows that differ: copies of a row have its values."""
        distinct, places = np.unique(np.asarray(x), axis=0, return_inverse=True)
        particles = self._particles_for(num_draws, seed)
        return _draws(self.target.posterior, particles, jnp.asarray(distinct), _key(seed))[:, places.reshape(-1)]

    def functions(self, num_draws, *, seed, num_features=NUM_FEATURES):
        return StrideFunctions(self, num_draws, seed, num_features)

    @property
    def _particles(self) -> tuple[PyTree, TopPosterior]:
        return self.target.chains.position, self.tops

    def _particles_for(self, num_draws: int, seed: int) -> tuple[PyTree, TopPosterior]:
        """One for every draw: all equally often, and at random which of them once more."""
        num_particles = self.target.chains.num_particles
        chosen = np.random.default_rng(seed).permutation(num_particles)[np.arange(num_draws) % num_particles]
        return jax.tree.map(lambda leaf: leaf[chosen], self._particles)


class StrideFunctions(eqx.Module):
    """Functions drawn from the posterior: call it with inputs in raw units, as often as you like."""

    fitted: StrideFit
    num_draws: int = eqx.field(static=True)
    seed: int = eqx.field(static=True)
    num_features: int = eqx.field(static=True)

    def __call__(self, x) -> Float[Array, "S N P"]:
        fitted, particles = self.fitted, self.fitted._particles_for(self.num_draws, self.seed)
        inputs = fitted.inputs(x)
        f = _functions(fitted.target.posterior, particles, inputs, _key(self.seed), self.num_features)
        scaling = fitted.model.scaling
        return f if scaling is None else scaling.invert_outputs(f)


def model_of(target: StrideTarget) -> DeepGP:
    """The kernels of all layers, the likelihood with its present noise, and the scaling."""
    one_layer, posterior = target.initial.fitted.model, target.posterior
    prior, (last,) = posterior.prior, one_layer.layers
    widths, covariances = (*target.hidden_widths, last.num_outputs), (prior.bottom, *prior.upper)
    layers = [GPLayer(k.kernel, width) for k, width in zip(covariances, widths, strict=True)]
    noisy = isinstance(one_layer.likelihood, GaussianNoise)
    likelihood = GaussianNoise(fixed(posterior.noise_variance)) if noisy else one_layer.likelihood
    return DeepGP(layers, likelihood, one_layer.scaling)


@compiled
def ended(posterior: Posterior, position: PyTree, at_once: int):
    """The top layer given each particle, the largest jitter, and how many variances rounding leaves below zero at the
    data."""

    def one(whitened):
        top, below = posterior.condition(whitened), posterior.top.split(whitened)[1]
        _, variance = top.moments(posterior.prior.top, posterior.features(whitened)[:REPORT_ROWS])
        jitter = jnp.maximum(top.jitter, posterior.hidden.largest_jitter(posterior.prior, below))
        return top, jitter, jnp.sum(variance < 0)

    tops, jitters, clipped = posterior.each(one, position, at_once)
    return tops, jnp.max(jitters), jnp.sum(clipped)


def _key(seed: int) -> RandomKey:
    return jr.fold_in(jr.key(seed), KEY_OF_DRAWS)


def _each(posterior: Posterior, function, particles: PyTree, num_rows: int):
    """The function of every particle, as many at once as fit."""
    num_particles = jax.tree.leaves(particles)[0].shape[0]
    suitable = suitable_particles_at_once(num_particles, max(posterior.num_entries, num_rows**2))
    return posterior.each(function, particles, largest_divisor(num_particles, suitable))


@compiled
def _by_row(posterior: Posterior, particles, z: Float[Array, "S H W"], x: Float[Array, "N D"]):
    """Means and variances [S, N, P]."""

    def one(particle):
        (whitened, top), own = particle
        mean, variance = top.predict(posterior.prior.top, posterior.features_at(whitened, x, by_row(own)))
        return mean, jnp.broadcast_to(variance[:, None], mean.shape)

    return _each(posterior, one, (particles, z), 1)


def _drawn_together(posterior: Posterior, whitened, x: Float[Array, "N D"], key: RandomKey) -> Float[Array, "N E"]:
    """Features of the top layer at rows whose hidden values are drawn as those of one function."""
    below = posterior.top.split(whitened)[1]
    z = jr.normal(key, (len(below), x.shape[0], below[0].shape[-1]), x.dtype)
    return posterior.features_at(whitened, x, together(z))


@compiled
def _together(posterior: Posterior, particles, x: Float[Array, "N D"], key: RandomKey):
    """Means [S, N, P] and covariances [S, N, N]."""

    def one(particle):
        (whitened, top), own_key = particle
        return top.predict_jointly(posterior.prior.top, _drawn_together(posterior, whitened, x, own_key))

    return _each(posterior, one, (particles, _keys(key, particles)), x.shape[0])


@compiled
def _draws(posterior: Posterior, particles, x: Float[Array, "N D"], key: RandomKey) -> Float[Array, "S N P"]:
    def one(particle):
        (whitened, top), own_key = particle
        key_hidden, key_top = jr.split(own_key)
        features = _drawn_together(posterior, whitened, x, key_hidden)
        mean, covariance = top.predict_jointly(posterior.prior.top, features)
        root = smallest_root(covariance, posterior.prior.top)
        return mean + root @ jr.normal(key_top, mean.shape, mean.dtype)

    return _each(posterior, one, (particles, _keys(key, particles)), x.shape[0])


@compiled
def _functions(posterior: Posterior, particles, x: Float[Array, "N D"], key: RandomKey, num_features: int):
    def one(particle):
        (whitened, top), own_key = particle
        key_hidden, key_top = jr.split(own_key)
        width = posterior.top.split(whitened)[1][0].shape[-1]
        features = posterior.features_at(whitened, x, pathwise(key_hidden, width, num_features))
        return top.draw_function(posterior.prior.top, features, key_top, num_features)

    return _each(posterior, one, (particles, _keys(key, particles)), num_features)


def _keys(key: RandomKey, particles: PyTree) -> Key[Array, " S"]:
    return jr.split(key, jax.tree.leaves(particles)[0].shape[0])
