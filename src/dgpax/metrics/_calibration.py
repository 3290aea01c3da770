"""Calibration of predictive distributions, and how sharp they are."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from scipy.stats import binom

from ..distributions import AbstractDistribution
from ..errors import InputError
from ..typing import Array, ArrayLike, Float, Scalar, Shaped
from ._targets import as_targets

NUM_LEVELS = 99


def pit(y: Shaped[ArrayLike, "..."], distribution: AbstractDistribution) -> Float[Array, "N P"]:
    """Probability integral transform F(y): uniform on [0, 1] if the predictions are right; NaN for a missing target.

    >>> import jax.numpy as jnp
    >>> from dgpax.distributions import Gaussian
    >>> from dgpax.metrics import pit
    >>> y, prediction = jnp.asarray([[0.0], [3.0]]), Gaussian(jnp.zeros((2, 1)), jnp.ones((2, 1)))
    >>> pit(y, prediction).round(4).tolist()
    [[0.5], [0.9987]]
    """
    targets = as_targets(y, distribution.mean)
    return jnp.where(targets.observed, distribution.cdf(targets.values), jnp.nan)


def coverage(y: Shaped[ArrayLike, "..."], distribution: AbstractDistribution, level: float = 0.9) -> Scalar:
    """Fraction of the targets inside the central interval that should hold `level` of them.

    >>> import jax.numpy as jnp
    >>> from dgpax.distributions import Gaussian
    >>> from dgpax.metrics import coverage
    >>> y, prediction = jnp.asarray([[0.0], [3.0]]), Gaussian(jnp.zeros((2, 1)), jnp.ones((2, 1)))
    >>> float(coverage(y, prediction, 0.9))
    0.5
    """
    targets = as_targets(y, distribution.mean)
    low, high = distribution.interval(level)
    return targets.average((low <= targets.values) & (targets.values <= high))


def mean_width(distribution: AbstractDistribution, level: float = 0.9) -> Scalar:
    """Sharpness: the mean width of the central intervals, in the units of y."""
    low, high = distribution.interval(level)
    return jnp.mean(high - low)


def calibration_curve(
    y: Shaped[ArrayLike, "..."], distribution: AbstractDistribution, levels: Float[ArrayLike, " K"] | None = None
) -> tuple[Float[Array, " K"], Float[Array, " K"]]:
    """(levels, observed): the fraction of targets at or below their predicted quantile at each level.

    The diagnostic of Kuleshov, Fenner & Ermon 2018, through the PIT values. Without `levels`: 0.01, 0.02, ..., 0.99.
    """
    return curve_of_ranks(pit(y, distribution), levels)


def curve_of_ranks(
    ranks: Float[Array, "N P"], levels: Float[ArrayLike, " K"] | None = None
) -> tuple[Float[Array, " K"], Float[Array, " K"]]:
    """`calibration_curve` of PIT values, NaN for missing targets."""
    if levels is None:
        levels = jnp.arange(1, NUM_LEVELS + 1) / (NUM_LEVELS + 1.0)
    levels = jnp.asarray(levels, ranks.dtype)
    if levels.ndim != 1 or levels.size == 0:
        raise InputError(f"levels must be a non-empty list of probabilities, shape (K,); got shape {levels.shape}.")
    below = jnp.searchsorted(jnp.sort(ranks, axis=None), levels, side="right")
    return levels, below / jnp.sum(~jnp.isnan(ranks), dtype=ranks.dtype)


def chance_band(
    levels: Float[ArrayLike, "*K"], num_targets: int, probability: float = 0.95
) -> tuple[Float[np.ndarray, "*K"], Float[np.ndarray, "*K"]]:
    """Between which shares of the targets, at each level by itself, a calibrated model's lie with this probability:
    by the binomial distribution of their number."""
    low, high = binom.interval(probability, num_targets, np.asarray(levels))
    return np.asarray(low / num_targets), np.asarray(high / num_targets)


def calibration_error(
    y: Shaped[ArrayLike, "..."], distribution: AbstractDistribution, levels: Float[ArrayLike, " K"] | None = None
) -> Scalar:
    """Mean absolute gap between nominal and observed in `calibration_curve` (quantiles, not central intervals).

    0 is perfect, 0.25 is utter over- or under-confidence, 0.5 is all targets on one side of the predictions.
    """
    return error_of_ranks(pit(y, distribution), levels)


def error_of_ranks(ranks: Float[Array, "N P"], levels: Float[ArrayLike, " K"] | None = None) -> Scalar:
    """`calibration_error` of PIT values, NaN for missing targets."""
    levels, observed = curve_of_ranks(ranks, levels)
    return jnp.mean(jnp.abs(levels - observed))
