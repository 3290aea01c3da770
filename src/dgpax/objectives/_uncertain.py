"""The evidence lower bound for inputs that are known up to a Gaussian error."""

from __future__ import annotations

import jax.numpy as jnp
import jax.random as jr

from ..data import Dataset
from ..distributions import Gaussian
from ..errors import InputError
from ..layers import last_gp
from ..likelihoods import GaussianNoise
from ..model import DeepGP
from ..posteriors import AbstractPosterior
from ..typing import Array, Float, RandomKey
from ..uncertain import sampled_outputs, uncertain_marginal
from ._elbo import VariationalTerms, latent_kl


def uncertain_elbo(
    model: DeepGP,
    posterior: AbstractPosterior,
    batch: Dataset,
    x: Gaussian,
    *,
    input_kl: Float[Array, ""] | float = 0.0,
) -> VariationalTerms:
    """Σ_n (E[log p(y_n | f(x_n))] − KL(q(x_n) || p(x_n))) · N/B − KL(q || p), x_n ~ q(x_n) [FRAMEWORK, eq. 65].

    `x` holds q(x_n) in the place of the batch's inputs, and `input_kl` the sum of its divergences from p(x_n), 0 where
    both are the same. With Gaussian noise only the mean and the variance of f(x_n) matter, so it is exact, without
    samples. For one layer, in the model's units.
    """
    num_layers = len(model.layers)
    if num_layers > 1 or not isinstance(model.likelihood, GaussianNoise):
        raise InputError(
            f"uncertain_elbo() is for one layer and GaussianNoise; the model has {num_layers} layer(s) and "
            f"{type(model.likelihood).__name__}. Use sampled_uncertain_elbo."
        )
    carry = posterior.begin(model.layers)
    q = uncertain_marginal(0, last_gp(model.layers), posterior, x, carry)
    return VariationalTerms(
        batch.scale * jnp.sum(batch.weighted(model.likelihood.expected_log_prob(q, batch.y))),
        posterior.kl(model.layers, carry),
        jnp.asarray(batch.scale * input_kl, batch.x.dtype),
        carry.jitter(),
    )


def sampled_uncertain_elbo(
    model: DeepGP,
    posterior: AbstractPosterior,
    batch: Dataset,
    x: Gaussian,
    *,
    key: RandomKey,
    input_kl: Float[Array, ""] | float = 0.0,
    num_samples: int = 1,
) -> VariationalTerms:
    """As `uncertain_elbo`, for any depth, kernel and likelihood: an unbiased estimate from draws of the inputs."""
    functions = posterior.tractable(jr.fold_in(key, len(model.layers)), (num_samples,))
    carry = functions.begin(model.layers)
    outputs = sampled_outputs(model.layers, functions, x, carry, key=key, num_samples=num_samples, batch=batch)
    likelihood = model.likelihood
    per_row = jnp.mean(likelihood.expected_log_prob(likelihood.for_expectation(outputs), batch.y), axis=0)
    return VariationalTerms(
        batch.scale * jnp.sum(batch.weighted(per_row)),
        posterior.kl(model.layers, carry),
        batch.scale * (latent_kl(model, posterior, batch) + input_kl),
        carry.jitter(),
    )
