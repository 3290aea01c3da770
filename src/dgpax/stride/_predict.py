"""A fitted STRIDE model: an equal mixture of sparse GPs, one per particle."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import logsumexp

from ..data import Dataset, check_inputs
from ..distributions import AbstractDistribution, Gaussian, Mixture
from ..errors import InputError
from ..inference._loop import suitable_blas_threads
from ..likelihoods import AbstractLikelihood, GaussianNoise
from ..prediction import PredictedMoments
from ..typing import Array, Float, Int, RandomKey
from ._hidden import AbstractHiddenMethod
from ._initial import Initial
from ._problem import Posterior
from ._report import StrideReport
from ._samplers import AbstractSampler, Chains
from ._settings import Schedule
from ._top import TopPosterior

CHUNK_ENTRIES = 2_000_000
"""Rows times particles times inducing points at a time."""


class StrideFit(eqx.Module):
    """Particles of the hidden layers, the inducing points of the top layer, and what happened [STRIDE, eq. 5]."""

    posterior: Posterior
    chains: Chains
    tops: TopPosterior
    """The top layer given each particle."""
    initial: Initial
    """The one-layer GP that gave kernel and noise; `initial.fitted` predicts on its own."""
    method: AbstractHiddenMethod
    sampler: AbstractSampler
    schedule: Schedule = eqx.field(static=True)
    seed: int = eqx.field(static=True)
    report: StrideReport = eqx.field(static=True)
    num_inputs: int = eqx.field(static=True)
    input_names: tuple[str, ...] = eqx.field(static=True)

    @property
    def inducing_rows(self) -> Int[Array, " M"] | None:
        """The rows of the data that are inducing points; None for the standard deep GP."""
        return self.posterior.top.inducing

    @property
    def noise_variance(self) -> Float[Array, " P"]:
        """In raw units, one per output."""
        self._require_gaussian_noise()
        scaling = self.initial.fitted.model.scaling
        return self.posterior.noise_variance * (1.0 if scaling is None else scaling.y_scale**2)

    def predict(self, x, *, seed: int = 0) -> AbstractDistribution:
        """The distribution of new observations y at the rows of x, noise included, in raw units.

        `seed` is for hidden layers that are drawn at new inputs, given their values at the rows of the data.
        For likelihoods other than Gaussian noise there are `predict_moments` and `log_density`.
        """
        self._require_gaussian_noise()
        return self._mixture(self._latent(x, seed), self.posterior.noise_variance)

    def predict_latent(self, x, *, seed: int = 0) -> AbstractDistribution:
        """The distribution of the noise-free function at the rows of x."""
        return self._mixture(self._latent(x, seed), 0.0)

    def predict_moments(self, x, *, seed: int = 0) -> PredictedMoments:
        """Mean and variance of new observations, by the law of total variance over the particles."""
        q, scaling = self._latent(x, seed), self.initial.fitted.model.scaling
        means, variances = self.likelihood.predictive_mean(q), self.likelihood.predictive_variance(q)
        mean, variance = jnp.mean(means, axis=0), jnp.mean(variances, axis=0) + jnp.var(means, axis=0)
        if scaling is None or mean.shape[-1] != scaling.y_scale.shape[0]:
            return PredictedMoments(mean, variance)
        return PredictedMoments(scaling.invert_mean(mean), scaling.invert_variance(variance))

    def log_density(self, data: Dataset, *, seed: int = 0) -> Float[Array, " N"]:
        """log p(y_n | x_n, training data) for every row, in raw units: log-mean-exp over the particles."""
        model = self.initial.fitted.model
        each = self.likelihood.predictive_log_prob(self._latent(data.x, seed), model.to_model_units(data).y)
        density = logsumexp(each, axis=0) - jnp.log(each.shape[0])
        return density if model.scaling is None else density + jnp.sum(model.scaling.log_jacobian)

    @property
    def likelihood(self) -> AbstractLikelihood:
        """p(y | f) in the model's units; Gaussian noise is as it was updated last."""
        likelihood = self.initial.fitted.model.likelihood
        return GaussianNoise(self.posterior.noise_variance) if isinstance(likelihood, GaussianNoise) else likelihood

    def _require_gaussian_noise(self) -> None:
        likelihood = self.initial.fitted.model.likelihood
        if not isinstance(likelihood, GaussianNoise):
            raise InputError(
                f"predict() and noise_variance are for Gaussian noise; the fit has {type(likelihood).__name__}. Use "
                "predict_moments, log_density or predict_latent."
            )

    def _mixture(self, latent: Gaussian, noise_variance) -> AbstractDistribution:
        noisy = Gaussian(latent.mean, latent.variance + noise_variance)
        return self.initial.fitted.model.to_raw_units(Mixture(noisy))

    def _latent(self, x, seed: int) -> Gaussian:
        """f given each particle, [S, N, Q], in the model's units."""
        model = self.initial.fitted.model
        inputs = model.inputs_to_model_units(check_inputs(x, self.num_inputs, self.input_names))
        per_row = self.tops.weights.shape[0] * self.tops.weights.shape[1]
        rows = max(1, CHUNK_ENTRIES // per_row)
        with suitable_blas_threads(self.posterior.hidden.num_sites()):
            parts = [
                _predict(self.posterior, self.chains.position, self.tops, inputs[start : start + rows], key)
                for start in range(0, inputs.shape[0], rows)
                for key in [jr.fold_in(jr.key(seed), start)]
            ]
            jax.block_until_ready(parts)
        return Gaussian(*(jnp.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True)))


@eqx.filter_jit
def _predict(posterior: Posterior, position, tops: TopPosterior, x: Float[Array, "K D"], key: RandomKey):
    """Means and variances [S, K, P]."""
    prior, hidden = posterior.prior, posterior.hidden

    def one(whitened, top, particle_key):
        variables = posterior.top.split(whitened)[1]
        u = hidden.at(prior, variables, x, particle_key)
        below = hidden.values(prior, variables)[-1]
        mean, variance = top.predict(prior.top, prior.features_at(x, u, below))
        return mean, jnp.broadcast_to(variance[:, None], mean.shape)

    return jax.vmap(one)(position, tops, jr.split(key, position[0].shape[0]))
