"""A fitted STRIDE model: an equal mixture of sparse GPs, one per particle."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.random as jr

from ..data import check_inputs
from ..distributions import AbstractDistribution, Gaussian, Mixture
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
        scaling = self.initial.fitted.model.scaling
        return self.posterior.noise_variance * (1.0 if scaling is None else scaling.y_scale**2)

    def predict(self, x, *, seed: int = 0) -> AbstractDistribution:
        """The distribution of new observations y at the rows of x, noise included, in raw units.

        `seed` is for hidden layers that are drawn at new inputs, given their values at the rows of the data.
        """
        return self._mixture(x, self.posterior.noise_variance, seed)

    def predict_latent(self, x, *, seed: int = 0) -> AbstractDistribution:
        """The distribution of the noise-free function at the rows of x."""
        return self._mixture(x, 0.0, seed)

    def _mixture(self, x, noise_variance, seed: int) -> AbstractDistribution:
        model = self.initial.fitted.model
        inputs = model.inputs_to_model_units(check_inputs(x, self.num_inputs, self.input_names))
        per_row = self.tops.weights.shape[0] * self.tops.weights.shape[1]
        rows = max(1, CHUNK_ENTRIES // per_row)
        parts = [
            _predict(self.posterior, self.chains.position, self.tops, inputs[start : start + rows], key)
            for start in range(0, inputs.shape[0], rows)
            for key in [jr.fold_in(jr.key(seed), start)]
        ]
        mean, variance = (jax.numpy.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
        return model.to_raw_units(Mixture(Gaussian(mean, variance + noise_variance)))


@eqx.filter_jit
def _predict(posterior: Posterior, position, tops: TopPosterior, x: Float[Array, "K D"], key: RandomKey):
    """Means and variances [S, K, P]."""
    prior, hidden = posterior.prior, posterior.hidden

    def one(whitened, top, particle_key):
        u = hidden.at(prior, whitened, x, particle_key)
        below = hidden.values(prior, whitened)[-1]
        mean, variance = top.predict(prior.top, prior.features_at(x, u, below))
        return mean, jax.numpy.broadcast_to(variance[:, None], mean.shape)

    return jax.vmap(one)(position, tops, jr.split(key, position[0].shape[0]))
