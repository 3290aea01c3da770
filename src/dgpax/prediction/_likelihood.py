"""Predictions under any likelihood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.special import logsumexp

from ..data import Dataset
from ..distributions import Gaussian, GaussianOverOutputs, Mixture
from ..errors import InputError
from ..fits import AbstractFit, require_fit, shares
from ..likelihoods import AbstractClassification
from ..linalg import einsum
from ..model import DeepGP
from ..programs import compiled
from ..typing import Array, Float, RandomKey
from ._predict import components, mixture_of_parts
from ._rows import by_chunks

MOST_COMPONENTS = 100
DRAWS = 2_000
"""For quantiles that have no formula."""
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

    def of_part(f, rows):
        return _moments(f.model, f.for_expectation())

    return by_chunks(fitted, x, num_samples, seed, of_part, _total_moments)


def predict_quantiles(
    fitted: AbstractFit, x, levels, *, num_samples: int = 100, seed: int = 0
) -> Float[Array, "L N P"]:
    """Quantiles of new observations, of every output by itself: of the mixture, or of many draws where the likelihood
    doesn't make one of Gaussians."""
    probabilities = np.atleast_1d(np.asarray(levels, float))
    if probabilities.ndim != 1 or np.any((probabilities <= 0) | (probabilities >= 1)):
        raise InputError(f"Quantiles lie between 0 and 1; got {levels!r}.")
    wanted, models = jnp.asarray(probabilities), [part.model for _, part in fitted.parts]

    def combine(weights, latent):
        gaussians = [components(model, q) for model, q in zip(models, latent, strict=True)]
        known = [q for q in gaussians if q is not None]
        if len(known) == len(gaussians):
            return _quantiles(fitted.model, mixture_of_parts(fitted, known), wanted)
        drawn = [_drawn(model, q, DRAWS // len(models)) for model, q in zip(models, latent, strict=True)]
        return _weighted_quantiles(drawn, weights, wanted)

    return by_chunks(fitted, x, num_samples, seed, lambda f, rows: f.for_expectation(), combine)


def class_probabilities(fitted: AbstractFit, x, *, num_samples: int = 100, seed: int = 0) -> Float[Array, "N C"]:
    """P(class c) at the rows of x, for classification likelihoods."""
    for _, part in fitted.parts:
        if not isinstance(part.model.likelihood, AbstractClassification):
            raise InputError(
                f"class_probabilities() is for classification; the model has {type(part.model.likelihood).__name__}. "
                "Use predict or predict_moments."
            )

    def of_part(f, rows):
        return _probabilities(f.model.likelihood, f.for_expectation())

    return by_chunks(fitted, x, num_samples, seed, of_part, _average)


def log_density(fitted: AbstractFit, data: Dataset, *, num_samples: int = 100, seed: int = 0) -> Float[Array, " N"]:
    """log p(y_n | x_n, training data) for every row, its outputs together, in raw units: log-mean-exp over samples of
    the inner layers."""

    def of_part(f, rows):
        scaling, q = f.model.scaling, f.model.likelihood.for_density(f)
        own = jnp.broadcast_to(data.y[:1], (len(f.x), data.num_outputs)).at[: rows.stop - rows.start].set(data.y[rows])
        return density_of_rows(f.model, q, own if scaling is None else scaling.outputs(own))[:, None]

    def combine(weights, densities):
        stacked = jnp.stack(densities)
        return logsumexp(stacked + jnp.asarray(np.log(weights), stacked.dtype)[:, None, None], axis=0)

    return by_chunks(fitted, data.x, num_samples, seed, of_part, combine)[:, 0]


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

    def of_part(part, count, seed):
        most = min(count, MOST_COMPONENTS)
        q = part.latent_jointly(part.inputs(x), "outputs", num_samples=most, seed=seed)
        num_components = q.mean.shape[0] if q.mean.ndim == 3 else 1
        key_f, key_y = jr.split(jr.fold_in(jr.key(seed), KEY_OF_OBSERVATIONS))
        f = q.sample(key_f, -(-count // num_components))
        return _observed(part.model, key_y, f.reshape(-1, *f.shape[-2:])[:count])

    return _from_parts(fitted, num_samples, seed, of_part)


def sample_functions(fitted: AbstractFit, x, num_samples: int, *, seed: int = 0) -> Float[Array, "S N P"]:
    """Draws of new observations y, in raw units, whose rows belong to one function each: noise is drawn by row."""

    def of_part(part, count, seed):
        key = jr.fold_in(jr.key(seed), KEY_OF_OBSERVATIONS)
        return _observed(part.model, key, part.draws(part.inputs(x), count, seed=seed))

    return _from_parts(fitted, num_samples, seed, of_part)


def _from_parts(fitted: AbstractFit, num_samples: int, seed: int, of_part: Callable) -> Float[Array, "S N P"]:
    """As many draws of each part as its weight says."""
    require_fit(fitted, "sample_functions")
    if num_samples < 1:
        raise InputError(f"num_samples must be at least 1; got {num_samples}.")
    return jnp.concatenate([of_part(*share) for share in shares(fitted, num_samples, seed)])


def _observed(model: DeepGP, key: RandomKey, f: Float[Array, "S N Q"]) -> Float[Array, "S N P"]:
    y = model.likelihood.sample(key, f)
    return y if model.scaling is None else model.scaling.invert_outputs(y)


@compiled
def density_of_rows(model: DeepGP, q: AnyGaussian, y: Float[Array, "N E"]) -> Float[Array, " N"]:
    """Log density, in raw units, of the mixture over the samples that q may have; q and y are in the model's units."""
    density = model.likelihood.predictive_log_prob(q, y)
    if density.ndim == 2:
        density = logsumexp(density, axis=0) - np.log(density.shape[0])
    if model.scaling is None:
        return density
    return density + jnp.sum(jnp.where(jnp.isnan(y), 0.0, model.scaling.log_jacobian.astype(y.dtype)), axis=-1)


@compiled
def _moments(model: DeepGP, q: AnyGaussian) -> PredictedMoments:
    mean, variance = model.likelihood.predictive_mean(q), model.likelihood.predictive_variance(q)
    if mean.ndim == 3:
        variance = jnp.mean(variance, axis=0) + jnp.var(mean, axis=0)
        mean = jnp.mean(mean, axis=0)
    scaling = model.scaling
    if scaling is None or mean.shape[-1] != scaling.y_scale.shape[0]:
        return PredictedMoments(mean, variance)
    return PredictedMoments(scaling.invert_mean(mean), scaling.invert_variance(variance))


@compiled
def _probabilities(likelihood: AbstractClassification, q: AnyGaussian) -> Float[Array, "N C"]:
    each = likelihood.class_probabilities(q)
    return jnp.mean(each, axis=0) if each.ndim == 3 else each


@compiled
def _quantiles(model: DeepGP, q: Gaussian | Mixture, levels: Float[Array, " L"]) -> Float[Array, "L N P"]:
    return model.to_raw_units(q).quantile(levels[:, None, None])


@compiled
def _drawn(model: DeepGP, q: AnyGaussian, total: int) -> Float[Array, "S N P"]:
    """Draws of new observations, at least so many, that use the same random numbers in every row."""
    draws, rows = -(-total // (q.mean.shape[0] if q.mean.ndim == 3 else 1)), q.mean.ndim - 2

    def of_row(q):
        key_f, key_y = jr.split(jr.key(1))
        f = jax.tree.map(lambda leaf: jnp.expand_dims(leaf, rows), q).sample(key_f, draws)
        y = model.likelihood.sample(key_y, f)
        return y.reshape(-1, y.shape[-1])

    values = jax.vmap(of_row, in_axes=rows, out_axes=1)(q)
    return values if model.scaling is None else model.scaling.invert_outputs(values)


def _weighted_quantiles(drawn: list[Float[Array, "S N P"]], weights: np.ndarray, levels: Float[Array, " L"]):
    """Of the draws of all parts together, linear in between."""
    sizes = np.asarray([len(draws) for draws in drawn])
    return _interpolated(jnp.concatenate(drawn), jnp.asarray(np.repeat(weights / sizes, sizes)), levels)


@compiled
def _interpolated(values: Float[Array, "S N P"], weights: Float[Array, " S"], levels: Float[Array, " L"]):
    """The smallest value at level 0, the largest at 1; with equal weights evenly spaced between, as by NumPy."""

    def of_entry(values):
        order = jnp.argsort(values)
        middle = jnp.cumsum(weights[order]) - 0.5 * weights[order]
        return jnp.interp(levels, (middle - middle[0]) / (middle[-1] - middle[0]), values[order])

    return jax.vmap(jax.vmap(of_entry, 1, 1), 1, 1)(values)


def _total_moments(weights: np.ndarray, moments: list[PredictedMoments]) -> PredictedMoments:
    """The law of total variance."""
    means, variances = (jnp.stack(each) for each in zip(*moments, strict=True))
    mean = _average(weights, means)
    return PredictedMoments(mean, _average(weights, variances) + _average(weights, (means - mean) ** 2))


def _average(weights: np.ndarray, values: Sequence[Float[Array, "N E"]] | Float[Array, "K N E"]) -> Float[Array, "N E"]:
    stacked = jnp.asarray(values)
    return einsum("k,k...->...", jnp.asarray(weights, stacked.dtype), stacked)
