"""The importance-weighted bound."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import logsumexp

from ..data import Dataset
from ..errors import InputError
from ..layers import GPLayer, last_gp
from ..model import DeepGP
from ..posteriors import AbstractPosterior
from ..propagate import outputs_of, walk
from ..typing import RandomKey
from ._base import AbstractObjective
from ._elbo import VariationalTerms


class ImportanceWeighted(AbstractObjective):
    """`importance_weighted_elbo` of a model and its posterior; all rows at once, `chunk_rows` is for other bounds."""

    num_samples: int = eqx.field(static=True, default=1)
    chunk_rows: int | None = eqx.field(static=True, default=None)
    num_weights: int = eqx.field(static=True, default=10)

    def __check_init__(self):
        _check(self.num_weights)

    def terms(self, target, data, key):
        return importance_weighted_elbo(
            target[0], target[1], data, key=key, num_weights=self.num_weights, num_samples=self.num_samples
        )


def importance_weighted_elbo(
    model: DeepGP,
    posterior: AbstractPosterior,
    batch: Dataset,
    *,
    key: RandomKey,
    num_weights: int = 10,
    num_samples: int = 1,
) -> VariationalTerms:
    """E log (1/K) Σ_k exp(E_q[log p(y_n | f_nk)]) p(w_nk)/q(w_nk), summed over rows · N/B, − KL
    [Salimbeni et al. 2019, eq. 17].

    The K = `num_weights` draws of a row differ in their latent variables and in the noise between layers, and share
    the functions: their values under one function are drawn jointly, without which it would be no bound. With K = 1
    it is the ELBO in expectation. It gains over the ELBO what a Gaussian q(w) misses, and nothing where every layer
    is a deterministic function.
    """
    _check(num_weights)
    key_outputs, key = jr.split(key)
    functions = posterior.layerwise(key_outputs, (num_samples, 1))
    carry = functions.begin(model.layers)

    def visit(index, random, x, log_ratio):
        own_key = jr.fold_in(key, index)
        if isinstance(random, GPLayer):
            return outputs_of(index, random, functions, x, carry).over_dependent().sample(own_key, 1)[0], log_ratio
        q = posterior.latents(index, batch)
        mean, stddev = q.mean[:, None], q.stddev[:, None]
        noise = jr.normal(own_key, (*x.shape[:-1], q.mean.shape[-1]), x.dtype)
        w = mean + stddev * noise
        ratio = 0.5 * (noise**2 - w**2) + jnp.log(stddev)
        return w, log_ratio + jnp.sum(ratio, axis=-1)

    x = jnp.broadcast_to(batch.x[:, None], (num_samples, batch.num_rows, num_weights, batch.num_inputs))
    last = last_gp(model.layers)
    given, log_ratio = walk(model.layers[:-1], x, visit, jnp.zeros(x.shape[:-1], x.dtype))
    outputs = outputs_of(len(model.layers) - 1, last, functions, given.last, carry)
    y = jnp.broadcast_to(batch.y[:, None], (*batch.y.shape[:1], num_weights, batch.y.shape[-1]))
    likelihood = model.likelihood
    log_weights = likelihood.expected_log_prob(likelihood.for_expectation(outputs), y) + log_ratio
    per_row = logsumexp(log_weights, axis=-1) - jnp.log(num_weights)
    total = batch.scale * jnp.sum(batch.weighted(per_row)) / num_samples
    return VariationalTerms(
        log_likelihood=total, kl=posterior.kl(model.layers, carry), latent_kl=0.0, jitter=carry.jitter()
    )


def _check(num_weights: int) -> None:
    if num_weights < 1:
        raise InputError(f"The importance-weighted bound needs num_weights >= 1; got {num_weights}.")
