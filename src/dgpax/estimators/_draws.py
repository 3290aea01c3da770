"""Draws of whole functions, and covariances between rows."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from sklearn.utils import check_random_state

from ..data import identity_scaling
from ..errors import InputError
from ..inference import Fit
from ..model import DeepGP
from ..posteriors import Particles
from ..prediction import draw_functions, predict_jointly, predict_latent
from ..stride import StrideFit

NUM_DRAWS = 1000


def draw_observations(fitted: Fit | StrideFit, x: np.ndarray, num_draws: int, random_state: Any) -> np.ndarray:
    """[S, N, P], in raw units. Where functions can't be drawn, rows share a particle and its draws of inner layers."""
    if num_draws < 1:
        raise InputError(f"n_samples must be at least 1; got {num_draws}.")
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    key = jr.key(seed)
    if isinstance(fitted, StrideFit):
        return np.asarray(fitted.predict(x).sample(key, num_draws))
    f = _draw_latent(fitted, x, num_draws, seed)
    y = fitted.model.likelihood.sample(key, f)
    scaling = fitted.model.scaling
    return np.asarray(y if scaling is None else scaling.invert_outputs(y))


def covariances(fitted: Fit | StrideFit, x: np.ndarray, stddev: np.ndarray) -> np.ndarray:
    """Between new observations, [N, N, P], in raw units, with these standard deviations on the diagonal."""
    if isinstance(fitted, Fit) and len(fitted.model.layers) == 1 and not isinstance(fitted.posterior, Particles):
        between = np.moveaxis(np.array(predict_jointly(fitted, x).covariance), 0, -1)
    else:
        between = _sample_covariance(draw_observations(fitted, x, NUM_DRAWS, 0))
    rows = np.arange(len(x))
    between[rows, rows] = stddev**2
    return between


def _sample_covariance(draws: np.ndarray) -> np.ndarray:
    centred = draws - draws.mean(axis=0)
    return np.einsum("snp,smp->nmp", centred, centred) / (len(draws) - 1)


def _draw_latent(fitted: Fit, x: np.ndarray, num_draws: int, seed: int) -> jnp.ndarray:
    """f in the model's units."""
    model = fitted.model
    if model.scaling is not None:
        plain = identity_scaling(fitted.num_inputs, model.layers[-1].num_outputs)
        scaling = dataclasses.replace(model.scaling, y_mean=plain.y_mean, y_scale=plain.y_scale)
        fitted = dataclasses.replace(fitted, model=DeepGP(model.layers, model.likelihood, scaling))
    if isinstance(fitted.posterior, Particles):
        return predict_latent(fitted, x, seed=seed).sample(jr.key(seed), num_draws)
    return draw_functions(fitted, num_draws, seed=seed)(x)
