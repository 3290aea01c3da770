"""Predictions at new inputs, in chunks of rows and in the units of the raw data.

A model with one layer has a Gaussian prediction. Behind inner layers it is a mixture over their samples: exact
moments, quantiles and densities of the mixture, never one sampled path and never an average of variances.
"""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax

from ..data import check_inputs
from ..distributions import AbstractDistribution, AbstractJointGaussian, Gaussian, GaussianOverInputs, Mixture
from ..errors import InputError
from ..inference import Fit
from ..likelihoods import GaussianNoise
from ..model import DeepGP
from ..posteriors import AbstractCarry, AbstractPosterior, Particles
from ..propagate import Noise, even_noise, for_rows, layer_outputs, propagate
from ..typing import Array, Float, RandomKey

CHUNK_ROWS = 10_000
KEY_OF_DRAWS = 2**31
MAX_JOINT_BYTES = 4 * 2**30


def predict(fitted: Fit, x, *, num_samples: int = 100, seed: int = 0) -> AbstractDistribution:
    """The distribution of new observations y at the rows of x, noise included.

    `num_samples` and `seed` are for models with inner layers; all rows share the samples, so that a row's prediction
    doesn't depend on the rows beside it and is smooth in x. It is the distribution of every row by itself: for rows
    together there are `sample_jointly` and `draw_functions`. For likelihoods other than Gaussian noise there are
    `predict_moments`, `log_density` and `class_probabilities`.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    >>> prediction = dgpax.predict(fitted, [[0.25], [0.5]])
    >>> prediction.mean.shape
    (2, 1)
    >>> low, high = prediction.interval(0.9)
    >>> bool((low < prediction.mean).all() and (prediction.mean < high).all())
    True
    """
    likelihood = fitted.model.likelihood
    if not isinstance(likelihood, GaussianNoise):
        raise InputError(
            f"predict() gives Gaussians and mixtures of them, for GaussianNoise; the model has "
            f"{type(likelihood).__name__}. Use predict_moments, log_density or class_probabilities."
        )
    y = _observed(latent(fitted, x, num_samples, seed), likelihood)
    return fitted.model.to_raw_units(_mixture(y))


def predict_latent(fitted: Fit, x, *, num_samples: int = 100, seed: int = 0) -> AbstractDistribution:
    """The distribution of the noise-free function f at the rows of x.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    >>> new = [[0.25], [0.5]]
    >>> noise_free, noisy = dgpax.predict_latent(fitted, new), dgpax.predict(fitted, new)
    >>> bool((noise_free.stddev < noisy.stddev).all())
    True
    """
    return fitted.model.to_raw_units(_mixture(latent(fitted, x, num_samples, seed)))


def predict_jointly(fitted: Fit, x) -> AbstractJointGaussian:
    """As `predict_latent`, with the covariance between all rows of x, for one layer: O(N²) memory.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    >>> dgpax.predict_jointly(fitted, [[0.25], [0.5]]).covariance.shape
    (1, 2, 2)
    """
    *inner, last = fitted.model.layers
    if inner:
        raise InputError("predict_jointly() is for models with one layer: behind inner layers f isn't Gaussian.")
    inputs = model_inputs(fitted, x)
    needed = 3 * last.num_outputs * inputs.shape[0] ** 2 * inputs.dtype.itemsize
    if needed > MAX_JOINT_BYTES:
        raise MemoryError(
            f"The covariance between {inputs.shape[0]} rows would need about {needed / 2**30:.1f} GiB. "
            "Use predict() for the variances, or fewer rows."
        )
    return fitted.model.joint_to_raw_units(_joint(fitted.model, fitted.posterior, inputs))


def model_inputs(fitted: Fit, x) -> Float[Array, "N D"]:
    """Checked inputs, in the model's units."""
    checked = check_inputs(x, fitted.num_inputs, fitted.input_names)
    return fitted.model.inputs_to_model_units(checked)


def latent(fitted: Fit, x, num_samples: int, seed: int) -> Gaussian:
    """`marginals` at inputs in raw units."""
    return marginals(fitted.model, fitted.posterior, model_inputs(fitted, x), num_samples, seed)


def marginals(
    model: DeepGP, posterior: AbstractPosterior, inputs: Float[Array, "N D"], num_samples: int, seed: int
) -> Gaussian:
    """q(f) in the model's units: [N, P] for one layer, [S, N, P] given samples of the inner layers.

    Particles have one sample each.
    """
    if num_samples < 1:
        raise InputError(f"num_samples must be at least 1; got {num_samples}.")
    if isinstance(posterior, Particles):
        (num_samples,) = posterior.shape
    elif len(model.layers) == 1:
        num_samples = 1
    rows = max(1, CHUNK_ROWS // num_samples)
    drawn, carry = _begin(model, posterior, jr.fold_in(jr.key(seed), KEY_OF_DRAWS), num_samples)
    noise = even_noise(model.layers, num_samples, seed, inputs.dtype)
    result = _marginal(model, drawn, carry, inputs[:rows], noise)
    if inputs.shape[0] > rows:
        result = _fill(_room_for(result, inputs.shape[0]), result, jnp.asarray(0))
    for start in range(rows, inputs.shape[0], rows):
        part = _marginal(model, drawn, carry, inputs[start : start + rows], noise)
        result = _fill(result, part, jnp.asarray(start))
    return result


def _room_for(part: Gaussian, num_rows: int) -> Gaussian:
    return jax.tree.map(lambda leaf: jnp.zeros((*leaf.shape[:-2], num_rows, leaf.shape[-1]), leaf.dtype), part)


@partial(jax.jit, donate_argnums=0)
def _fill(result: Gaussian, part: Gaussian, start) -> Gaussian:
    """The result with some of its rows written in place: there are never two copies of it."""
    return jax.tree.map(lambda a, b: lax.dynamic_update_slice_in_dim(a, b, start, axis=a.ndim - 2), result, part)


@partial(jax.jit, donate_argnums=0)
def _observed(q: Gaussian, likelihood: GaussianNoise) -> Gaussian:
    """Of y instead of f, in the same memory."""
    return Gaussian(likelihood.predictive_mean(q), likelihood.predictive_variance(q))


@eqx.filter_jit
def _begin(
    model: DeepGP, posterior: AbstractPosterior, key: RandomKey, num_samples: int
) -> tuple[AbstractPosterior, AbstractCarry]:
    """What all chunks of rows share."""
    posterior = posterior.tractable(key, (num_samples,))
    return posterior, posterior.begin(model.layers)


@eqx.filter_jit
def _marginal(
    model: DeepGP,
    posterior: AbstractPosterior,
    carry: AbstractCarry,
    x: Float[Array, "N D"],
    noise: Noise,
) -> Gaussian:
    return propagate(model.layers, posterior, x, carry, for_rows(noise, x.shape[0]))


@eqx.filter_jit
def _joint(model: DeepGP, posterior: AbstractPosterior, x: Float[Array, "N D"]) -> GaussianOverInputs:
    return layer_outputs(0, model.layers[0], posterior, x, posterior.begin(model.layers)).over_inputs()


def _mixture(q: Gaussian) -> AbstractDistribution:
    return q if q.mean.ndim == 2 else Mixture(q)
