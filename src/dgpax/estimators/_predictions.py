"""Predictions that depend on the row alone, not on the rows beside it: all rows share the draws of the inner layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from scipy.stats import norm

from ..distributions import AbstractDistribution, Gaussian, Mixture
from ..errors import InputError
from ..inference import Fit
from ..likelihoods import AbstractLikelihood, GaussianNoise, HeteroskedasticGaussian
from ..model import DeepGP
from ..posteriors import AbstractPosterior, Particles
from ..propagate import even_noise, for_rows, propagate
from ..typing import Array, Float

NUM_SAMPLES = 100
CHUNK_ROWS, FEW_ROWS = 256, 64
DRAWS_PER_SAMPLE = 20
NODES = 7


def moments(fitted: Fit, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of new observations, [N, P], in raw units."""
    parts = [_cut(_moments(fitted.model, fitted.posterior, rows), count) for rows, count in chunks(x)]
    return np.concatenate([mean for mean, _ in parts]), np.concatenate([stddev for _, stddev in parts])


def probabilities(fitted: Fit, x: np.ndarray) -> np.ndarray:
    """P(class c), [N, C]."""
    parts = [_cut(_probabilities(fitted.model, fitted.posterior, rows), count) for rows, count in chunks(x)]
    return np.concatenate(parts)


def quantiles(fitted: Fit, x: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Of new observations, [levels, N, P]: from the mixture, or from many draws where it isn't one of Gaussians."""
    of_chunk = _mixture_quantiles if _is_mixture(fitted) else _drawn_quantiles
    parts = [
        np.asarray(of_chunk(fitted.model, fitted.posterior, rows, jnp.asarray(levels)))[:, :count]
        for rows, count in chunks(x)
    ]
    return np.concatenate(parts, axis=1)


def distribution(fitted: Fit, x: np.ndarray) -> AbstractDistribution:
    """Of new observations, noise included, in raw units."""
    if not _is_mixture(fitted):
        raise InputError(
            f"predict_dist gives mixtures of Gaussians, which {type(fitted.model.likelihood).__name__} doesn't have. "
            "Use predict(return_std=True), predict_quantiles or sample_y."
        )
    parts = [(_components(fitted.model, fitted.posterior, rows), count) for rows, count in chunks(x)]
    cut = [jax.tree.map(lambda leaf, count=count: np.asarray(leaf)[..., :count, :], part) for part, count in parts]
    whole = jax.tree.map(lambda *leaves: jnp.asarray(np.concatenate(leaves, axis=-2)), *cut)
    return fitted.model.to_raw_units(Mixture(whole) if whole.mean.ndim == 3 else whole)


def chunks(x: np.ndarray) -> Iterator[tuple[Float[Array, "N D"], int]]:
    """Rows in chunks of few sizes, and how many of each are asked for; the last one has copies of its first row."""
    for start in range(0, len(x), CHUNK_ROWS):
        chunk = x[start : start + CHUNK_ROWS]
        padding = (FEW_ROWS if len(chunk) <= FEW_ROWS else CHUNK_ROWS) - len(chunk)
        yield jnp.asarray(np.concatenate([chunk, np.broadcast_to(chunk[:1], (padding, chunk.shape[1]))])), len(chunk)


def latent(model: DeepGP, posterior: AbstractPosterior, x: Float[Array, "N D"]) -> Gaussian:
    """q(f) in the model's units, [S, N, Q], or [N, Q] for one layer."""
    num_samples = posterior.shape[0] if isinstance(posterior, Particles) else NUM_SAMPLES
    functions = posterior.tractable(jr.key(0), (num_samples,))
    noise = for_rows(even_noise(model.layers, num_samples, 0, x.dtype), len(x))
    return propagate(
        model.layers, functions, model.inputs_to_model_units(x), functions.begin(model.layers), noise
    ).marginal()


@eqx.filter_jit
def _moments(model: DeepGP, posterior: AbstractPosterior, x: Float[Array, "N D"]) -> tuple[Array, Array]:
    q = latent(model, posterior, x)
    mean, variance = model.likelihood.predictive_mean(q), model.likelihood.predictive_variance(q)
    if mean.ndim == 3:
        variance = jnp.mean(variance, axis=0) + jnp.var(mean, axis=0)
        mean = jnp.mean(mean, axis=0)
    stddev, scaling = jnp.sqrt(variance), model.scaling
    return (mean, stddev) if scaling is None else (scaling.invert_mean(mean), scaling.invert_deviation(stddev))


@eqx.filter_jit
def _probabilities(model: DeepGP, posterior: AbstractPosterior, x: Float[Array, "N D"]) -> Float[Array, "N C"]:
    likelihood: Any = model.likelihood
    each = likelihood.class_probabilities(latent(model, posterior, x))
    return jnp.mean(each, axis=0) if each.ndim == 3 else each


def _is_mixture(fitted: Fit) -> bool:
    return isinstance(fitted.model.likelihood, GaussianNoise | HeteroskedasticGaussian)


@eqx.filter_jit
def _components(model: DeepGP, posterior: AbstractPosterior, x: Float[Array, "N D"]) -> Gaussian:
    return observed(model.likelihood, latent(model, posterior, x))


def observed(likelihood: AbstractLikelihood, q: Gaussian) -> Gaussian:
    """Gaussians of y, one per draw of the inner layers; where the noise is a function too, also per value of it."""
    if not isinstance(likelihood, HeteroskedasticGaussian):
        return Gaussian(likelihood.predictive_mean(q), likelihood.predictive_variance(q))
    mean, log_noise = jnp.split(q.mean, 2, axis=-1)
    variance, spread = jnp.split(q.variance, 2, axis=-1)
    z = norm.ppf((np.arange(NODES) + 0.5) / NODES).reshape(-1, *([1] * mean.ndim))
    total = variance + jnp.exp(log_noise + z * jnp.sqrt(spread))
    return Gaussian(
        jnp.broadcast_to(mean, total.shape).reshape(-1, *mean.shape[-2:]), total.reshape(-1, *mean.shape[-2:])
    )


@eqx.filter_jit
def _mixture_quantiles(
    model: DeepGP, posterior: AbstractPosterior, x: Float[Array, "N D"], levels: Float[Array, " L"]
) -> Float[Array, "L N P"]:
    components = observed(model.likelihood, latent(model, posterior, x))
    mixture = Mixture(components) if components.mean.ndim == 3 else components
    return model.to_raw_units(mixture).quantile(levels[:, None, None])


@eqx.filter_jit
def _drawn_quantiles(
    model: DeepGP, posterior: AbstractPosterior, x: Float[Array, "N D"], levels: Float[Array, " L"]
) -> Float[Array, "L N P"]:
    """Of draws of f and y that use the same random numbers in every row."""
    q = latent(model, posterior, x)

    def of_row(mean, variance):
        key_f, key_y = jr.split(jr.key(1))
        f = Gaussian(mean[..., None, :], variance[..., None, :]).sample(key_f, DRAWS_PER_SAMPLE)
        y = model.likelihood.sample(key_y, f)
        return jnp.quantile(y.reshape(-1, y.shape[-1]), levels, axis=0)

    values = jax.vmap(of_row, in_axes=-2, out_axes=1)(q.mean, q.variance)
    return values if model.scaling is None else model.scaling.invert_outputs(values)


def _cut(parts, count: int):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:count], parts)
