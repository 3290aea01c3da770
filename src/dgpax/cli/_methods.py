"""The ways of predicting that `dgpax compare` puts side by side."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri
from threadpoolctl import threadpool_limits

from ..architectures import gp_regression, sparse_gp_regression
from ..data import Dataset
from ..distributions import AbstractDistribution, Gaussian
from ..estimators import DeepGPRegressor
from ..inference import fit
from ..prediction import predict
from ..report import judge_distribution
from ._source import Source

LEVEL = 0.9
QUANTILES = np.arange(0.05, 1.0, 0.1)
"""The midpoints of ten equal parts of (0, 1), of which the outer ones make a 90% interval."""
SMALLEST_SPREAD = 0.01
"""The least standard deviation that the density of gradient boosting is given, in those of the target."""
NUM_INDUCING = 100


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
    """`DeepGPRegressor` as it comes."""
    train, test = source.train, source.test

    def distribution() -> AbstractDistribution:
        uneven = source.encoding.has_many_gaps(np.asarray(train.x))  # which it can't see in numbers
        likelihood = "heteroskedastic" if uneven else "gaussian"
        model = DeepGPRegressor(likelihood=likelihood, max_time=max_seconds, random_state=seed)
        return model.fit(np.asarray(train.x), np.asarray(train.y)).predict_dist(np.asarray(test.x))

    return _scored("deep GP", test, distribution)


def sparse_gp(source: Source, max_seconds: float, seed: int) -> Scored:
    """One layer with inducing points."""
    train, test = source.train, source.test

    def distribution() -> AbstractDistribution:
        model = sparse_gp_regression(train, min(NUM_INDUCING, train.num_rows), seed=seed)
        return predict(fit(model, train, "sparse", max_seconds=max_seconds, progress=False), test.x)

    return _scored("one-layer sparse GP", test, distribution)


def exact_gp(source: Source, max_seconds: float, seed: int) -> Scored:
    """One layer, exactly."""
    train, test = source.train, source.test

    def distribution() -> AbstractDistribution:
        model = gp_regression(train, gaps=source.encoding.gaps)
        return predict(fit(model, train, max_seconds=max_seconds, progress=False), test.x)

    return _scored("exact GP", test, distribution)


def the_mean(source: Source, max_seconds: float, seed: int) -> Scored:
    """The mean and the standard deviation of the training targets, whatever the inputs are."""
    train, test = source.train, source.test
    mean, variance = (jnp.broadcast_to(of(train.y), test.y.shape) for of in (jnp.mean, jnp.var))
    return _scored("always the mean", test, lambda: Gaussian(mean, variance))


def gradient_boosting(source: Source, max_seconds: float, seed: int) -> Scored:
    """Trees for the mean and for ten quantiles, by scikit-learn, as they come.

    CRPS = 2 ∫ pinball loss at level q dq [Gneiting & Ranjan 2011, eq. (12)] by the midpoint rule; coverage and width
    are of the 5% and 95% quantiles; the density is that of a normal with the same 5% and 95% quantiles.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    train, test, started = source.train, source.test, time.perf_counter()
    x, y, new, observed = (np.asarray(part) for part in (train.x, train.y[:, 0], test.x, test.y[:, 0]))
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


def _scored(method: str, test: Dataset, distribution: Callable[[], AbstractDistribution]) -> Scored:
    started = time.perf_counter()
    prediction = distribution()
    judged = judge_distribution(test.y, prediction, LEVEL)
    seconds = time.perf_counter() - started
    own = {name: judged.scores[name] for name in ("rmse", "nlpd", "crps", "coverage")}
    densities = np.asarray(prediction.log_prob(test.y))[:, 0]
    return Scored(method, **own, width=judged.scores["mean_width"], seconds=seconds, log_densities=densities)
