"""The ways of predicting that `dgpax compare` puts side by side."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri
from threadpoolctl import threadpool_limits

from ..data import Dataset
from ..distributions import AbstractDistribution, Gaussian
from ..prediction import predict
from ..recipes import Recipe, train
from ..report import judge_distribution
from ._source import Source

LEVEL = 0.9
QUANTILES = np.arange(0.05, 1.0, 0.1)
"""The midpoints of ten equal parts of (0, 1), of which the outer ones make a 90% interval."""
SMALLEST_SPREAD = 0.01
"""The least standard deviation that the density of gradient boosting is given, in those of the target."""


class Scored(NamedTuple):
    """A method on held-out rows; `log_densities` are those of the rows."""

    method: str
    rmse: float
    nlpd: float
    crps: float
    coverage: float
    width: float
    seconds: float
    log_densities: np.ndarray

    def numbers(self) -> dict[str, float]:
        """All but the single rows."""
        return {name: value for name, value in self._asdict().items() if isinstance(value, float)}


def deep_gp(source: Source, max_seconds: float, seed: int) -> Scored:
    """What `dgpax fit` and `DeepGPRegressor` make without options."""
    return _gp("deep GP", source, Recipe(max_time=max_seconds, seed=seed, progress=False))


def sparse_gp(source: Source, max_seconds: float, seed: int) -> Scored:
    """One layer with inducing points."""
    return _gp("one-layer sparse GP", source, Recipe("sparse", max_time=max_seconds, seed=seed, progress=False))


def exact_gp(source: Source, max_seconds: float, seed: int) -> Scored:
    """One layer, exactly."""
    return _gp("exact GP", source, Recipe("exact", max_time=max_seconds, seed=seed, progress=False))


def the_mean(source: Source, max_seconds: float, seed: int) -> Scored:
    """The mean and the standard deviation of the training targets, whatever the inputs are."""
    y, test = source.train.y, source.test
    mean, variance = (jnp.broadcast_to(of(y), test.y.shape) for of in (jnp.mean, jnp.var))
    return _scored("always the mean", test, lambda: Gaussian(mean, variance))


def gradient_boosting(source: Source, max_seconds: float, seed: int) -> Scored:
    """Trees for the mean and for ten quantiles, by scikit-learn, as they come.

    CRPS = 2 ∫ pinball loss at level q dq [Gneiting & Ranjan 2011, eq. (12)] by the midpoint rule; coverage and width
    are of the 5% and 95% quantiles; the density is that of a normal with the same 5% and 95% quantiles.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    known, test, started = source.train, source.test, time.perf_counter()
    x, y, new, observed = (np.asarray(part) for part in (known.x, known.y[:, 0], test.x, test.y[:, 0]))
    models = [HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=seed) for q in QUANTILES]
    with threadpool_limits(1):  # threads that wait by spinning are slower than one as soon as a core is busy
        mean = HistGradientBoostingRegressor(random_state=seed).fit(x, y).predict(new)
        quantiles = np.sort([model.fit(x, y).predict(new) for model in models], axis=0)
    error = observed - quantiles
    pinball = np.maximum(QUANTILES[:, None] * error, (QUANTILES[:, None] - 1.0) * error)
    low, high = quantiles[0], quantiles[-1]
    spread = np.maximum((high - low) / (2.0 * ndtri(0.5 + 0.5 * LEVEL)), SMALLEST_SPREAD * np.std(y))
    density = -0.5 * (np.log(2.0 * np.pi) + ((observed - 0.5 * (low + high)) / spread) ** 2) - np.log(spread)
    return Scored(
        "gradient boosting",
        rmse=float(np.sqrt(np.mean((observed - mean) ** 2))),
        nlpd=-float(np.mean(density)),
        crps=2.0 * float(np.mean(pinball)),
        coverage=float(np.mean((low <= observed) & (observed <= high))),
        width=float(np.mean(high - low)),
        seconds=time.perf_counter() - started,
        log_densities=density,
    )


def _gp(method: str, source: Source, recipe: Recipe) -> Scored:
    return _scored(method, source.test, lambda: predict(train(recipe, source.rows()), source.test.x, seed=recipe.seed))


def _scored(method: str, test: Dataset, distribution: Callable[[], AbstractDistribution]) -> Scored:
    started = time.perf_counter()
    prediction = distribution()
    judged = judge_distribution(test.y, prediction, LEVEL)
    seconds = time.perf_counter() - started
    own = {name: judged.scores[name] for name in ("rmse", "nlpd", "crps", "coverage")}
    densities = np.asarray(prediction.log_prob(test.y))[:, 0]
    return Scored(method, **own, width=judged.scores["mean_width"], seconds=seconds, log_densities=densities)
