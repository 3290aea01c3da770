"""Predictions at new inputs, in chunks of rows."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from ..data import check_inputs
from ..distributions import AbstractDistribution, AbstractJointGaussian, Gaussian, GaussianOverInputs
from ..errors import InputError
from ..inference import Fit
from ..likelihoods import GaussianNoise
from ..model import DeepGP
from ..posteriors import AbstractPosterior
from ..propagate import layer_over_inputs, propagate
from ..typing import Array, Float

CHUNK_ROWS = 10_000
MAX_JOINT_BYTES = 4 * 2**30


def predict(fitted: Fit, x) -> AbstractDistribution:
    """The distribution of new observations y at the rows of x, noise included."""
    latent = _latent(fitted, x)
    likelihood = fitted.model.likelihood
    if not isinstance(likelihood, GaussianNoise):
        raise InputError(
            f"predict() returns a Gaussian and so needs GaussianNoise; the model has {type(likelihood).__name__}. "
            "Use predict_latent() with the likelihood's predictive_mean, predictive_variance, predictive_log_prob."
        )
    return fitted.model.to_raw_units(
        Gaussian(likelihood.predictive_mean(latent), likelihood.predictive_variance(latent))
    )


def predict_latent(fitted: Fit, x) -> AbstractDistribution:
    """The distribution of the noise-free function f at the rows of x."""
    return fitted.model.to_raw_units(_latent(fitted, x))


def predict_jointly(fitted: Fit, x) -> AbstractJointGaussian:
    """As `predict_latent`, with the covariance between all rows of x: O(N²) memory."""
    inputs = _inputs(fitted, x)
    needed = 3 * fitted.model.layers[-1].num_outputs * inputs.shape[0] ** 2 * inputs.dtype.itemsize
    if needed > MAX_JOINT_BYTES:
        raise MemoryError(
            f"The covariance between {inputs.shape[0]} rows would need about {needed / 2**30:.1f} GiB. "
            "Use predict() for the variances, or fewer rows."
        )
    return fitted.model.joint_to_raw_units(_joint(fitted.model, fitted.posterior, inputs))


def _inputs(fitted: Fit, x) -> Float[Array, "N D"]:
    checked = check_inputs(x, fitted.num_inputs, fitted.input_names)
    return fitted.model.inputs_to_model_units(checked)


def _latent(fitted: Fit, x) -> Gaussian:
    inputs = _inputs(fitted, x)
    parts = [
        _marginal(fitted.model, fitted.posterior, inputs[start : start + CHUNK_ROWS])
        for start in range(0, inputs.shape[0], CHUNK_ROWS)
    ]
    return Gaussian(jnp.concatenate([p.mean for p in parts]), jnp.concatenate([p.variance for p in parts]))


@eqx.filter_jit
def _marginal(model: DeepGP, posterior: AbstractPosterior, x: Float[Array, "N D"]) -> Gaussian:
    return propagate(model.layers, posterior, x, posterior.begin(model.layers))


@eqx.filter_jit
def _joint(model: DeepGP, posterior: AbstractPosterior, x: Float[Array, "N D"]) -> GaussianOverInputs:
    return layer_over_inputs(0, model.layers[0], posterior, x, posterior.begin(model.layers))
