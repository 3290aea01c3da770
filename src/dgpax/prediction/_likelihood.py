"""Predictions under any likelihood."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from ..data import Dataset
from ..errors import InputError
from ..inference import Fit
from ..likelihoods import AbstractClassification
from ..typing import Array, Float
from ._predict import latent


class PredictedMoments(NamedTuple):
    """Mean and variance of new observations."""

    mean: Float[Array, "N E"]
    variance: Float[Array, "N E"]


def predict_moments(fitted: Fit, x, *, num_samples: int = 100, seed: int = 0) -> PredictedMoments:
    """Mean and variance of new observations y, by the law of total variance over samples of the inner layers.

    For unordered classes they are those of one-hot vectors, so the mean holds the class probabilities.
    """
    q = latent(fitted, x, num_samples, seed)
    likelihood, scaling = fitted.model.likelihood, fitted.model.scaling
    means, variances = likelihood.predictive_mean(q), likelihood.predictive_variance(q)
    if means.ndim == 3:
        variances = jnp.mean(variances, axis=0) + jnp.var(means, axis=0)
        means = jnp.mean(means, axis=0)
    if scaling is None or means.shape[-1] != scaling.y_scale.shape[0]:
        return PredictedMoments(means, variances)
    return PredictedMoments(scaling.invert_mean(means), scaling.invert_variance(variances))


def log_density(fitted: Fit, data: Dataset, *, num_samples: int = 100, seed: int = 0) -> Float[Array, " N"]:
    """log p(y_n | x_n, training data) for every row, in raw units: log-mean-exp over samples of the inner layers."""
    q = latent(fitted, data.x, num_samples, seed)
    model = fitted.model
    y = model.to_model_units(data).y
    density = model.likelihood.predictive_log_prob(q, y)
    if density.ndim == 2:
        density = logsumexp(density, axis=0) - np.log(density.shape[0])
    if model.scaling is None:
        return density
    return density + jnp.sum(jnp.where(jnp.isnan(y), 0.0, model.scaling.log_jacobian.astype(y.dtype)), axis=-1)


def class_probabilities(fitted: Fit, x, *, num_samples: int = 100, seed: int = 0) -> Float[Array, "N C"]:
    """P(class c) at the rows of x, for classification likelihoods."""
    likelihood = fitted.model.likelihood
    if not isinstance(likelihood, AbstractClassification):
        raise InputError(
            f"class_probabilities() is for classification; the model has {type(likelihood).__name__}. "
            "Use predict or predict_moments."
        )
    probabilities = likelihood.class_probabilities(latent(fitted, x, num_samples, seed))
    return jnp.mean(probabilities, axis=0) if probabilities.ndim == 3 else probabilities
