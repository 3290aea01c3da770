"""Predictions at inputs that are known up to a Gaussian error."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.random as jr

from ..distributions import AbstractDistribution, Gaussian, Mixture
from ..errors import InputError
from ..fits import AbstractFit, with_posterior
from ..layers import last_gp
from ..likelihoods import GaussianNoise
from ..model import DeepGP
from ..posteriors import AbstractPosterior
from ..programs import compiled
from ..typing import RandomKey
from ..uncertain import as_input_variance, input_variance_to_model_units, sampled_outputs, uncertain_marginal
from ._rows import SAMPLE_ROWS


def predict_uncertain(fitted: AbstractFit, x, input_variance) -> AbstractDistribution:
    """New observations y, noise included, at inputs N(x, input_variance): the Gaussian with y's exact moments.

    `input_variance` is in raw units: one number, one per column [D], or one per entry [N, D]. For one layer and
    kernels that have an expansion (`dgpax.expectations`); y's true distribution isn't Gaussian, see
    `predict_uncertain_sampled`.
    """
    own, likelihood = with_posterior(fitted, "predict_uncertain()"), _gaussian_noise(fitted)
    num_layers = len(own.model.layers)
    if num_layers > 1:
        raise InputError(
            f"predict_uncertain() is for models with one layer; this one has {num_layers}. "
            "Use predict_uncertain_sampled."
        )
    q = _closed_form(own.model, own.posterior, _inputs(own, x, input_variance))
    return own.model.to_raw_units(Gaussian(q.mean, likelihood.predictive_variance(q)))


def predict_uncertain_sampled(
    fitted: AbstractFit, x, input_variance, *, num_samples: int = 100, seed: int = 0
) -> AbstractDistribution:
    """As `predict_uncertain`, for every kernel and depth: a mixture over draws of the inputs and of inner layers."""
    if num_samples < 1:
        raise InputError(f"num_samples must be at least 1; got {num_samples}.")
    own, likelihood = with_posterior(fitted, "predict_uncertain_sampled()"), _gaussian_noise(fitted)
    inputs = _inputs(fitted, x, input_variance)
    rows = max(1, SAMPLE_ROWS // num_samples)
    parts = []
    for start in range(0, inputs.mean.shape[0], rows):
        chunk = jax.tree.map(lambda leaf, start=start: leaf[start : start + rows], inputs)
        parts.append(_sampled(own.model, own.posterior, chunk, jr.fold_in(jr.key(seed), start), num_samples))
    q = jax.tree.map(lambda *leaves: jnp.concatenate(leaves, axis=-2), *parts)
    return fitted.model.to_raw_units(Mixture(Gaussian(q.mean, likelihood.predictive_variance(q))))


def _gaussian_noise(fitted: AbstractFit) -> GaussianNoise:
    likelihood = fitted.model.likelihood
    if not isinstance(likelihood, GaussianNoise):
        raise InputError(
            f"Predictions at uncertain inputs are for GaussianNoise; the model has {type(likelihood).__name__}."
        )
    return likelihood


def _inputs(fitted: AbstractFit, x, input_variance) -> Gaussian:
    """The inputs and their variances in the model's units."""
    mean = fitted.inputs(x)
    return Gaussian(mean, input_variance_to_model_units(fitted.model, as_input_variance(input_variance, mean)))


@compiled
def _closed_form(model: DeepGP, posterior: AbstractPosterior, x: Gaussian) -> Gaussian:
    return uncertain_marginal(0, last_gp(model.layers), posterior, x, posterior.begin(model.layers))


@compiled
def _sampled(model: DeepGP, posterior: AbstractPosterior, x: Gaussian, key: RandomKey, num_samples: int) -> Gaussian:
    posterior = posterior.tractable(jr.fold_in(key, len(model.layers)), (num_samples,))
    carry = posterior.begin(model.layers)
    return sampled_outputs(model.layers, posterior, x, carry, key=key, num_samples=num_samples).marginal()
