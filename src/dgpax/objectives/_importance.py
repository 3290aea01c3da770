"""The importance-weighted bound."""

from __future__ import annotations

import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import logsumexp

from ..data import Dataset
from ..distributions import Gaussian
from ..errors import InputError
from ..layers import AppendInputs, LatentVariables
from ..model import DeepGP
from ..posteriors import AbstractPosterior
from ..propagate import beside, layer_outputs
from ..typing import Array, Float, RandomKey
from ._base import AbstractTerms


class ImportanceWeightedTerms(AbstractTerms):
    """Bound = Σ_n of the log average weight − KL of the inducing outputs."""

    log_weights: Float[Array, ""]
    kl: Float[Array, ""]
    jitter: Float[Array, ""]

    @property
    def total(self):
        return self.log_weights - self.kl


def importance_weighted_elbo(
    model: DeepGP,
    posterior: AbstractPosterior,
    batch: Dataset,
    *,
    key: RandomKey,
    num_weights: int = 10,
    num_samples: int = 1,
) -> ImportanceWeightedTerms:
    """E log (1/K) Σ_k exp(E_q[log p(y_n | f_nk)]) p(w_nk)/q(w_nk), summed over rows · N/B, − KL
    [Salimbeni et al. 2019, eq. 17].

    The K = `num_weights` draws of a row differ in their latent variables and in the noise between layers, and share
    the functions: their values under one function are drawn jointly, without which it would be no bound. With K = 1
    it is the ELBO in expectation. It gains over the ELBO what a Gaussian q(w) misses, and nothing where every layer
    is a deterministic function.
    """
    if num_weights < 1:
        raise InputError(f"importance_weighted_elbo(num_weights=...) must be at least 1; got {num_weights}.")
    key_outputs, key = jr.split(key)
    functions = posterior.layerwise(key_outputs, (num_samples, 1))
    carry = functions.begin(model.layers)
    x = jnp.broadcast_to(batch.x[:, None], (num_samples, batch.num_rows, num_weights, batch.num_inputs))
    log_ratio = jnp.zeros(x.shape[:-1], x.dtype)
    inputs = x
    for index, layer in enumerate(model.layers[:-1]):
        own_key = jr.fold_in(key, index)
        if isinstance(layer, AppendInputs):
            x = beside(x, inputs)
        elif isinstance(layer, LatentVariables):
            q = posterior.latents(index, batch)
            w, ratio = _weighted_draw(Gaussian(q.mean[:, None], q.variance[:, None]), x.shape[:-1], own_key)
            x, log_ratio = beside(x, w), log_ratio + ratio
        else:
            x = layer_outputs(index, layer, functions, x, carry).over_dependent().sample(own_key, 1)[0]
    last = len(model.layers) - 1
    q = layer_outputs(last, model.layers[last], functions, x, carry).marginal()
    y = jnp.broadcast_to(batch.y[:, None], (*batch.y.shape[:1], num_weights, batch.y.shape[-1]))
    log_weights = model.likelihood.expected_log_prob(q, y) + log_ratio
    per_row = logsumexp(log_weights, axis=-1) - jnp.log(num_weights)
    total = batch.scale * jnp.sum(batch.weighted(per_row)) / num_samples
    return ImportanceWeightedTerms(total, posterior.kl(model.layers, carry), carry.jitter())


def _weighted_draw(q: Gaussian, shape: tuple[int, ...], key: RandomKey):
    """w ~ q and log p(w)/q(w) with p = N(0, I), summed over the latent variables of a row."""
    noise = jr.normal(key, (*shape, q.mean.shape[-1]), q.mean.dtype)
    w = q.mean + q.stddev * noise
    ratio = 0.5 * (noise**2 - w**2 + jnp.log(q.variance))
    return w, jnp.sum(ratio, axis=-1)
