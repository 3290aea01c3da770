"""Held-out rows judged once, in one compiled program, for the page and for scripts."""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..data import Dataset
from ..distributions import AbstractDistribution
from ..inference import Fit
from ..likelihoods import AbstractClassification, GaussianNoise
from ..metrics import accuracy, brier, calibration_error, crps, log_loss, mae, nlpd, pit, rmse, smse
from ..prediction import class_probabilities, log_density, predict, predict_moments
from ..typing import Array, Float

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
SCORES = (rmse, mae, smse, nlpd, crps, calibration_error)


@dataclass(frozen=True)
class Regression:
    """Predictions of numbers [N, P], their ranks (PIT) and intervals at several levels, and their scores."""

    observed: np.ndarray
    mean: np.ndarray
    stddev: np.ndarray
    ranks: np.ndarray
    intervals: dict[float, tuple[np.ndarray, np.ndarray]]
    level: float
    scores: dict[str, float]

    def covered(self, level: float) -> float:
        """The share of targets inside their intervals."""
        low, high = self.intervals[level]
        there = ~np.isnan(self.observed)
        return float(np.mean(((low <= self.observed) & (self.observed <= high))[there]))

    def width(self, level: float) -> float:
        """The mean width of the intervals."""
        low, high = self.intervals[level]
        return float(np.mean(high - low))


@dataclass(frozen=True)
class Classification:
    """Labels that were observed and the probabilities of all classes [N, C], and their scores."""

    labels: np.ndarray
    probabilities: np.ndarray
    scores: dict[str, float]


@dataclass(frozen=True)
class Moments:
    """Predictions with a mean and a standard deviation [N, E], but no distribution at hand, and their scores."""

    observed: np.ndarray
    mean: np.ndarray
    stddev: np.ndarray
    likelihood: str
    scores: dict[str, float]


def judge(fitted: Fit, test: Dataset, level: float = 0.9, seed: int = 0) -> Regression | Classification | Moments:
    """How the model does on held-out rows, in the way that suits its likelihood."""
    likelihood = fitted.model.likelihood
    if isinstance(likelihood, GaussianNoise):
        return judge_distribution(test.y, predict(fitted, test.x, seed=seed), level)
    if isinstance(likelihood, AbstractClassification):
        return judge_probabilities(test.y, np.asarray(class_probabilities(fitted, test.x, seed=seed)))
    moments = predict_moments(fitted, test.x, seed=seed)
    scores = {score.__name__: float(score(test.y, moments.mean)) for score in (rmse, mae, smse)}
    scores["nlpd"] = -float(np.mean(log_density(fitted, test, seed=seed)))
    deviation = np.sqrt(np.asarray(moments.variance))
    return Moments(np.asarray(test.y), np.asarray(moments.mean), deviation, type(likelihood).__name__, scores)


def scores(fitted: Fit, test: Dataset, *, level: float = 0.9, seed: int = 0) -> dict[str, float]:
    """The usual scores on held-out rows: those of `metrics.regression_report`, or accuracy, log loss and Brier score of
    classes, or what can be said without a predictive distribution."""
    return judge(fitted, test, level, seed).scores


def judge_distribution(y, distribution: AbstractDistribution, level: float = 0.9) -> Regression:
    """Any predictive distribution of targets [N, P]."""
    levels = tuple(sorted({*LEVELS, level}))
    tails = np.array([tail for each in levels for tail in (0.5 - 0.5 * each, 0.5 + 0.5 * each)])
    found, edges = _look(jnp.asarray(y), distribution, jnp.asarray(tails))
    edges = np.asarray(edges)
    intervals = {each: (edges[2 * i], edges[2 * i + 1]) for i, each in enumerate(levels)}
    own = {score.__name__: float(found[score.__name__]) for score in SCORES}
    mean, stddev, ranks = (np.asarray(found[name]) for name in ("mean", "stddev", "ranks"))
    judged = Regression(np.asarray(y), mean, stddev, ranks, intervals, level, own)
    own |= {"coverage": judged.covered(level), "mean_width": judged.width(level)}
    return judged


def judge_probabilities(y, probabilities: np.ndarray) -> Classification:
    """Any probabilities of labels; rows without a label don't count."""
    labels = np.asarray(y).reshape(len(probabilities))
    there = ~np.isnan(labels)
    labels, p = labels[there].astype(int), probabilities[there]
    own = {score.__name__: float(score(labels, p)) for score in (accuracy, log_loss, brier)}
    return Classification(labels, p, own)


@eqx.filter_jit
def _look(
    y: Float[Array, "N P"], distribution: AbstractDistribution, tails: Float[Array, " K"]
) -> tuple[dict[str, Float[Array, "..."]], Float[Array, "K N P"]]:
    found = {score.__name__: score(y, distribution) for score in SCORES}
    found |= {"mean": distribution.mean, "stddev": distribution.stddev, "ranks": pit(y, distribution)}
    return found, distribution.quantile(tails[:, None, None])
