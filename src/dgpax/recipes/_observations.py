"""Likelihoods by one word, with starting values from the targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..likelihoods import (
    AbstractLikelihood,
    BernoulliProbit,
    HeteroskedasticGaussian,
    NegativeBinomial,
    Poisson,
    Softmax,
    StudentT,
)
from ..means import AbstractMean, Constant
from ._rows import Rows

NOISE_START = 0.1


class Observation(NamedTuple):
    """How targets come about: a likelihood (None: Gaussian noise), and the mean of the latent functions where it isn't
    zero."""

    likelihood: AbstractLikelihood | None = None
    mean: AbstractMean | None = None


def _gaussian(y: np.ndarray) -> Observation:
    return Observation()


def _student_t(y: np.ndarray) -> Observation:
    return Observation(StudentT(jnp.asarray(np.sqrt(NOISE_START)), jnp.asarray(4.0)))


def _heteroskedastic(y: np.ndarray) -> Observation:
    start = np.concatenate([np.zeros(y.shape[1]), np.full(y.shape[1], np.log(NOISE_START))])
    return Observation(HeteroskedasticGaussian(), mean=Constant(jnp.asarray(start)))


def _poisson(y: np.ndarray) -> Observation:
    return Observation(Poisson(), mean=_log_mean(y))


def _negative_binomial(y: np.ndarray) -> Observation:
    return Observation(NegativeBinomial(), mean=_log_mean(y))


def _log_mean(y: np.ndarray) -> Constant:
    return Constant(jnp.asarray(np.log(np.maximum(np.nanmean(y, axis=0), 0.1))))


LIKELIHOODS: dict[str, Callable[[np.ndarray], Observation]] = {
    "gaussian": _gaussian,
    "student_t": _student_t,
    "poisson": _poisson,
    "negative_binomial": _negative_binomial,
    "heteroskedastic": _heteroskedastic,
}


def observation(word: str | None, rows: Rows) -> Observation:
    """What a word stands for, for these targets. Without one, the noise depends on the inputs where many rows have
    gaps, as these are harder to predict; labels have no other.

    Two classes, or one, have one latent function.
    """
    if rows.num_classes:
        likelihood = Softmax(rows.num_classes) if rows.num_classes > 2 else BernoulliProbit()
        return Observation(likelihood)
    word, y = word or ("heteroskedastic" if rows.has_many_gaps else "gaussian"), rows.y
    if word in ("poisson", "negative_binomial") and np.any((y < 0) | (y != np.round(y)) & ~np.isnan(y)):
        raise InputError(f"likelihood={word!r} is for counts, 0, 1, 2, …; the targets hold others. Use 'gaussian'.")
    return LIKELIHOODS[word](y)
