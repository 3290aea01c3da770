"""Held-out rows judged once, in one compiled program, for the page and for scripts."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from ..data import Dataset
from ..distributions import AbstractDistribution
from ..fits import AbstractFit
from ..likelihoods import AbstractClassification, GaussianNoise
from ..metrics import accuracy, brier, calibration_error, crps, error_of_ranks, log_loss, mae, nlpd, pit, rmse, smse
from ..prediction import class_probabilities, log_density, predict, predict_moments
from ..programs import compiled
from ..typing import Array, Float
from ._drawn import judge_by_draws

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
SCORES = (rmse, mae, smse, nlpd, crps, calibration_error)
NOTE = (
    "The likelihood is {likelihood}: intervals, ranks and CRPS come from 1,000 draws of every row. A whole number on "
    "the edge of its interval counts in part (randomised PIT)."
)


@dataclass(frozen=True)
class Regression:
    """Predictions of numbers [N, P], their ranks (PIT), intervals at several levels and the shares of the targets that
    these hold, and the errors. `note` says what a reader should know about them."""

    observed: np.ndarray
    mean: np.ndarray
    stddev: np.ndarray
    ranks: np.ndarray
    intervals: dict[float, tuple[np.ndarray, np.ndarray]]
    covered: dict[float, float]
    level: float
    errors: dict[str, float]
    note: str = ""

    @property
    def scores(self) -> dict[str, float]:
        """The errors, and how the intervals at the chosen level do."""
        return self.errors | {"coverage": self.covered[self.level], "mean_width": self.width(self.level)}

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


def judge(fitted: AbstractFit, test: Dataset, level: float = 0.9, seed: int = 0) -> Regression | Classification:
    """How the model does on held-out rows, in the way that suits its likelihood."""
    likelihood = fitted.model.likelihood
    if isinstance(likelihood, GaussianNoise):
        return judge_distribution(test.y, predict(fitted, test.x, seed=seed), level)
    if isinstance(likelihood, AbstractClassification):
        return judge_probabilities(test.y, np.asarray(class_probabilities(fitted, test.x, seed=seed)))
    return _judge_any(fitted, test, level, seed)


def scores(fitted: AbstractFit, test: Dataset, *, level: float = 0.9, seed: int = 0) -> dict[str, float]:
    """The usual scores on held-out rows: those of `metrics.regression_report`, by draws where the noise isn't Gaussian,
    or accuracy, log loss and Brier score of classes."""
    return judge(fitted, test, level, seed).scores


def judge_distribution(y, distribution: AbstractDistribution, level: float = 0.9) -> Regression:
    """Any predictive distribution of targets [N, P]."""
    levels = _levels_with(level)
    found, edges = _look(jnp.asarray(y), distribution, jnp.asarray(_tails(levels)))
    observed, intervals = np.asarray(y), _intervals(levels, np.asarray(edges))
    there = ~np.isnan(observed)
    inside = {each: (low <= observed) & (observed <= high) for each, (low, high) in intervals.items()}
    covered = {each: float(np.mean(values[there])) for each, values in inside.items()}
    own = {score.__name__: float(found[score.__name__]) for score in SCORES}
    mean, stddev, ranks = (np.asarray(found[name]) for name in ("mean", "stddev", "ranks"))
    return Regression(observed, mean, stddev, ranks, intervals, covered, level, own)


def judge_probabilities(y, probabilities: np.ndarray) -> Classification:
    """Any probabilities of labels; rows without a label don't count."""
    labels = np.asarray(y).reshape(len(probabilities))
    there = ~np.isnan(labels)
    labels, p = labels[there].astype(int), probabilities[there]
    own = {score.__name__: float(score(labels, p)) for score in (accuracy, log_loss, brier)}
    return Classification(labels, p, own)


def _judge_any(fitted: AbstractFit, test: Dataset, level: float, seed: int) -> Regression:
    """By draws. Intervals of whole numbers hold more than they state, so coverage is that of the randomised ranks."""
    levels, x, y = _levels_with(level), np.asarray(test.x), np.asarray(test.y)
    drawn = judge_by_draws(fitted, x, y, _tails(levels), seed)
    intervals, moments = _intervals(levels, drawn.quantiles), predict_moments(fitted, test.x, seed=seed)
    ranks = drawn.ranks[~np.isnan(drawn.ranks)]
    covered = {each: float(np.mean(np.abs(2.0 * ranks - 1.0) <= each)) for each in levels}
    own = {score.__name__: float(score(test.y, moments.mean)) for score in (rmse, mae, smse)}
    own["nlpd"] = -float(np.mean(log_density(fitted, test, seed=seed)))
    own |= {"crps": float(np.nanmean(drawn.crps)), "calibration_error": float(error_of_ranks(jnp.asarray(drawn.ranks)))}
    mean, stddev = np.asarray(moments.mean), np.sqrt(np.asarray(moments.variance))
    note = NOTE.format(likelihood=type(fitted.model.likelihood).__name__)
    return Regression(y, mean, stddev, drawn.ranks, intervals, covered, level, own, note)


def _levels_with(level: float) -> tuple[float, ...]:
    return tuple(sorted({*LEVELS, level}))


def _tails(levels: tuple[float, ...]) -> np.ndarray:
    return np.array([tail for level in levels for tail in (0.5 - 0.5 * level, 0.5 + 0.5 * level)])


def _intervals(levels: tuple[float, ...], edges: np.ndarray) -> dict[float, tuple[np.ndarray, np.ndarray]]:
    return {level: (edges[2 * i], edges[2 * i + 1]) for i, level in enumerate(levels)}


@compiled
def _look(
    y: Float[Array, "N P"], distribution: AbstractDistribution, tails: Float[Array, " K"]
) -> tuple[dict[str, Float[Array, "..."]], Float[Array, "K N P"]]:
    found = {score.__name__: score(y, distribution) for score in SCORES}
    found |= {"mean": distribution.mean, "stddev": distribution.stddev, "ranks": pit(y, distribution)}
    return found, distribution.quantile(tails[:, None, None])
