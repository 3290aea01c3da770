"""Predictions under any likelihood."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.special import logsumexp

from ..data import Dataset
from ..distributions import Gaussian, GaussianOverOutputs, Mixture
from ..errors import InputError
from ..fits import AbstractFit
from ..likelihoods import AbstractClassification
from ..model import DeepGP
from ..typing import Array, Float
from ._rows import by_chunks

MOST_COMPONENTS = 100
DRAWS_PER_SAMPLE = 20
KEY_OF_OBSERVATIONS = 2**31 + 1

AnyGaussian = Gaussian | GaussianOverOutputs


class PredictedMoments(NamedTuple):
    """Mean and variance of new observations."""

    mean: Float[Array, "N E"]
    variance: Float[Array, "N E"]


def predict_moments(fitted: AbstractFit, x, *, num_samples: int = 100, seed: int = 0) -> PredictedMoments:
    """Mean and variance of new observations y, by the law of total variance over samples of the inner layers.

    For unordered classes they are those of one-hot vectors, so the mean holds the class probabilities.
    """
    model = fitted.model
    return by_chunks(fitted, x, num_samples, seed, lambda f, rows: _moments(model, model.likelihood.for_expectation(f)))


def predict_quantiles(
    fitted: AbstractFit, x, levels, *, num_samples: int = 100, seed: int = 0
) -> Float[Array, "L N P"]:
    """Quantiles of new observations, of every output by itself: of the mixture, or of many draws where the likelihood
    doesn't make one of Gaussians."""
    probabilities = np.atleast_1d(np.asarray(levels, float))
    if probabilities.ndim != 1 or np.any((probabilities <= 0) | (probabilities >= 1)):
        raise InputError(f"Quantiles lie between 0 and 1; got {levels!r}.")
    model, wanted = fitted.model, jnp.asarray(probabilities)
    return by_chunks(fitted, x, num_samples, seed, lambda f, rows: _quantiles(model, f.marginal(), wanted))


def class_probabilities(fitted: AbstractFit, x, *, num_samples: int = 100, seed: int = 0) -> Float[Array, "N C"]:
    """P(class c) at the rows of x, for classification likelihoods."""
    likelihood = fitted.model.likelihood
    if not isinstance(likelihood, AbstractClassification):
        raise InputError(
            f"class_probabilities() is for classification; the model has {type(likelihood).__name__}. "
            "Use predict or predict_moments."
        )
    return by_chunks(
        fitted, x, num_samples, seed, lambda f, rows: _probabilities(likelihood, likelihood.for_expectation(f))
    )


def log_density(fitted: AbstractFit, data: Dataset, *, num_samples: int = 100, seed: int = 0) -> Float[Array, " N"]:
    """log p(y_n | x_n, training data) for every row, its outputs together, in raw units: log-mean-exp over samples of
    the inner layers."""
    model, y = fitted.model, fitted.model.to_model_units(data).y

    def of_rows(f, rows):
        q = model.likelihood.for_density(f)
        own = jnp.broadcast_to(y[:1], (len(f.x), y.shape[1])).at[: rows.stop - rows.start].set(y[rows])
        return density_of_rows(model, q, own)[:, None]

    return by_chunks(fitted, data.x, num_samples, seed, of_rows)[:, 0]


def sample_observations(fitted: AbstractFit, x, *, num_samples: int = 100, seed: int = 0) -> Float[Array, "S N P"]:
    """Draws of new observations y under any likelihood, in raw units: the outputs of a row together, every row by
    itself.

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
    inputs, model = fitted.inputs(x), fitted.model
    q = fitted.latent_jointly(inputs, "outputs", num_samples=min(num_samples, MOST_COMPONENTS), seed=seed)
    num_components = q.mean.shape[0] if q.mean.ndim == 3 else 1
    key_f, key_y = jr.split(jr.fold_in(jr.key(seed), KEY_OF_OBSERVATIONS))
    f = q.sample(key_f, -(-num_samples // num_components))
    y = model.likelihood.sample(key_y, f.reshape(-1, *f.shape[-2:])[:num_samples])
    return y if model.scaling is None else model.scaling.invert_outputs(y)


def sample_functions(fitted: AbstractFit, x, num_samples: int, *, seed: int = 0) -> Float[Array, "S N P"]:
    """Draws of new observations y, in raw units, whose rows belong to one function each: noise is drawn by row."""
    if num_samples < 1:
        raise InputError(f"num_samples must be at least 1; got {num_samples}.")
    model = fitted.model
    f = fitted.draws(fitted.inputs(x), num_samples, seed=seed)
    y = model.likelihood.sample(jr.fold_in(jr.key(seed), KEY_OF_OBSERVATIONS), f)
    return y if model.scaling is None else model.scaling.invert_outputs(y)


@eqx.filter_jit
def density_of_rows(model: DeepGP, q: AnyGaussian, y: Float[Array, "N E"]) -> Float[Array, " N"]:
    """Log density, in raw units, of the mixture over the samples that q may have; q and y are in the model's units."""
    density = model.likelihood.predictive_log_prob(q, y)
    if density.ndim == 2:
        density = logsumexp(density, axis=0) - np.log(density.shape[0])
    if model.scaling is None:
        return density
    return density + jnp.sum(jnp.where(jnp.isnan(y), 0.0, model.scaling.log_jacobian.astype(y.dtype)), axis=-1)


@eqx.filter_jit
def _moments(model: DeepGP, q: AnyGaussian) -> PredictedMoments:
    mean, variance = model.likelihood.predictive_mean(q), model.likelihood.predictive_variance(q)
    if mean.ndim == 3:
        variance = jnp.mean(variance, axis=0) + jnp.var(mean, axis=0)
        mean = jnp.mean(mean, axis=0)
    scaling = model.scaling
    if scaling is None or mean.shape[-1] != scaling.y_scale.shape[0]:
        return PredictedMoments(mean, variance)
    return PredictedMoments(scaling.invert_mean(mean), scaling.invert_variance(variance))


@eqx.filter_jit
def _probabilities(likelihood: AbstractClassification, q: AnyGaussian) -> Float[Array, "N C"]:
    each = likelihood.class_probabilities(q)
    return jnp.mean(each, axis=0) if each.ndim == 3 else each


@eqx.filter_jit
def _quantiles(model: DeepGP, q: Gaussian, levels: Float[Array, " L"]) -> Float[Array, "L N P"]:
    components = model.likelihood.components(q)
    if components is None:
        return _drawn_quantiles(model, q, levels)
    mixture = Mixture(components) if components.mean.ndim == 3 else components
    return model.to_raw_units(mixture).quantile(levels[:, None, None])


def _drawn_quantiles(model: DeepGP, q: Gaussian, levels: Float[Array, " L"]) -> Float[Array, "L N P"]:
    """Of draws of f and y that use the same random numbers in every row."""

    def of_row(mean, variance):
        key_f, key_y = jr.split(jr.key(1))
        f = Gaussian(mean[..., None, :], variance[..., None, :]).sample(key_f, DRAWS_PER_SAMPLE)
        y = model.likelihood.sample(key_y, f)
        return jnp.quantile(y.reshape(-1, y.shape[-1]), levels, axis=0)

    values = jax.vmap(of_row, in_axes=-2, out_axes=1)(q.mean, q.variance)
    return values if model.scaling is None else model.scaling.invert_outputs(values)
