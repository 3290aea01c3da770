"""Predictions under any likelihood."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.special import logsumexp

from ..data import Dataset
from ..distributions import Gaussian
from ..errors import InputError
from ..inference import Fit
from ..likelihoods import AbstractClassification
from ..model import DeepGP
from ..typing import Array, Float
from ._predict import latent

MOST_COMPONENTS = 100
KEY_OF_OBSERVATIONS = 2**31 + 1


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
    return density_of_rows(fitted.model, q, fitted.model.to_model_units(data).y)


def density_of_rows(model: DeepGP, q: Gaussian, y: Float[Array, "N E"]) -> Float[Array, " N"]:
    """Log density, in raw units, of the mixture over the samples that q may have; q and y are in the model's units."""
    density = model.likelihood.predictive_log_prob(q, y)
    if density.ndim == 2:
        density = logsumexp(density, axis=0) - np.log(density.shape[0])
    if model.scaling is None:
        return density
    return density + jnp.sum(jnp.where(jnp.isnan(y), 0.0, model.scaling.log_jacobian.astype(y.dtype)), axis=-1)


def sample_observations(fitted: Fit, x, *, num_samples: int = 100, seed: int = 0) -> Float[Array, "S N P"]:
    """Draws of new observations y under any likelihood, in raw units, every row by itself.

    Up to 100 samples of the inner layers, or the particles, are shared among the draws. For draws whose rows belong to
    one function see `sample_jointly` and `draw_functions`.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    >>> dgpax.prediction.sample_observations(fitted, [[0.25], [0.5]], num_samples=7).shape
    (7, 2, 1)
    """
    q = latent(fitted, x, min(num_samples, MOST_COMPONENTS), seed)
    likelihood, scaling = fitted.model.likelihood, fitted.model.scaling
    num_components = q.mean.shape[0] if q.mean.ndim == 3 else 1
    key_f, key_y = jr.split(jr.fold_in(jr.key(seed), KEY_OF_OBSERVATIONS))
    f = q.sample(key_f, -(-num_samples // num_components))
    y = likelihood.sample(key_y, f.reshape(-1, *f.shape[-2:])[:num_samples])
    return y if scaling is None else scaling.invert_outputs(y)


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
