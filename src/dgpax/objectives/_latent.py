"""The evidence lower bound of a GP with latent inputs, without samples."""

from __future__ import annotations

import jax.numpy as jnp

from ..data import Dataset
from ..distributions import Gaussian
from ..errors import InputError
from ..layers import GPLayer, LatentVariables
from ..likelihoods import GaussianNoise
from ..model import DeepGP
from ..posteriors import AbstractPosterior
from ..uncertain import uncertain_marginal
from ._elbo import VariationalTerms, latent_kl


def latent_elbo(model: DeepGP, posterior: AbstractPosterior, batch: Dataset) -> VariationalTerms:
    """Σ_n (E[log p(y_n | f(x_n, w_n))] − KL(q(w_n) || N(0, I))) · N/B − KL(q || p) [FRAMEWORK, eq. 65], exactly.

    For a layer of latent variables and a GP layer behind it, Gaussian noise, and kernels that have an expansion
    (`dgpax.expectations`): what `elbo` estimates from draws of w_n. Without inputs x it is the bound of the Bayesian
    GP-LVM [Titsias & Lawrence 2010], with q(u) held explicitly, so that it goes with minibatches. In the model's units.
    """
    layer = _behind_latents(model)
    carry = posterior.begin(model.layers)
    w = posterior.latents(0, batch)
    mean = jnp.concatenate([batch.x, w.mean], axis=-1)
    variance = jnp.concatenate([jnp.zeros_like(batch.x), w.variance], axis=-1)
    q = uncertain_marginal(1, layer, posterior, Gaussian(mean, variance), carry)
    return VariationalTerms(
        batch.scale * jnp.sum(batch.weighted(model.likelihood.expected_log_prob(q, batch.y))),
        posterior.kl(model.layers, carry),
        batch.scale * latent_kl(model, posterior, batch),
        carry.jitter(),
    )


def _behind_latents(model: DeepGP) -> GPLayer:
    """The GP layer of a model that has the closed form; otherwise an error that says what to do."""
    match model.layers:
        case (LatentVariables(), GPLayer() as layer) if isinstance(model.likelihood, GaussianNoise):
            return layer
    kinds = ", ".join(type(layer).__name__ for layer in model.layers)
    raise InputError(
        "Latent variables have a closed form in a model of LatentVariables, GPLayer and GaussianNoise; this one has "
        f"{kinds} and {type(model.likelihood).__name__}. Use samples: Variational(num_samples=...)."
    )
