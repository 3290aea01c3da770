"""Regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state

from ..distributions import AbstractDistribution, AbstractJointGaussian
from ..errors import InputError
from ..likelihoods import GaussianNoise
from ..prediction import predict, predict_jointly, predict_moments, predict_quantiles, sample_functions
from ._base import AbstractSupervised
from ._targets import read_numbers

NUM_DRAWS = 1000
MOST_ENTRIES = 20_000_000
"""Of the covariances between rows, one for every draw, at a time."""


@dataclass(eq=False, repr=False)
class DeepGPRegressor(RegressorMixin, AbstractSupervised):
    """Regression with calibrated uncertainty by a deep Gaussian process. No argument needs tuning.

    `num_layers=None` means one for `inference` "exact" and "sparse", else two; up to 1,000 rows with Gaussian noise,
    one exact layer, "rbf" and "matern52", and two are trained, and weighed by rows that their fits haven't seen;
    elsewhere `kernel` is "rbf" unless it is "matern52", "matern32" or "matern12", from smooth to rough. `posterior` is
    "mean-field", "layer-wise", "stripes-and-arrow", "fully-coupled", "chain" or "points-as-locations", for variational
    inference. `inference` is "variational", "sghmc" (draws), "stride" (draws, for few rows), "exact" (up to a few
    thousand rows) or "sparse"; `architecture` ("residual", "composition", "convolution", "injective") and
    `num_particles` are for "stride". `likelihood` says what the targets are: "gaussian", "student_t" (outliers),
    "heteroskedastic" (noise that depends on the inputs), "poisson" and "negative_binomial" (counts). None is
    "gaussian", and "heteroskedastic" where ten rows or more have gaps, as these are harder to predict, and inference
    allows it. A fit stops when the bound no longer improves, after `max_steps` or after `max_time` seconds. With more
    than `batch_size` rows (1,000) a step sees that many. `verbose` shows a progress bar.

    Inputs may have text, categories, dates and gaps (`dgpax.data.Encoding`). Targets may have several columns, with
    gaps (NaN).

    >>> import numpy as np
    >>> from dgpax import DeepGPRegressor
    >>> x = np.linspace(0.0, 1.0, 40)[:, None]
    >>> y = np.sin(6.0 * x[:, 0])
    >>> model = DeepGPRegressor(num_layers=2, max_steps=100).fit(x, y)
    >>> mean, stddev = model.predict(x, return_std=True)
    >>> model.predict_interval(x, 0.9).shape, model.score(x, y) > 0.9
    ((40, 2), True)
    """

    num_layers: int | None = None
    posterior: str = "mean-field"
    inference: str = "variational"
    likelihood: str | None = None
    kernel: str | None = None
    num_inducing: int | None = None
    architecture: str = "residual"
    num_particles: int | None = None
    max_steps: int | None = None
    max_time: float | int | None = None
    batch_size: int | None = None
    random_state: Any = 0
    verbose: bool | int = False

    def fit(self, X, y, sample_weight=None) -> DeepGPRegressor:
        """Train on a table of inputs [N, D] and targets [N] or [N, P]. A weight of 2 is the row twice."""
        recipe = self._recipe()
        self._train(recipe, self._rows(X, y, sample_weight, learn=True))
        return self

    def partial_fit(self, X, y, sample_weight=None) -> DeepGPRegressor:
        """Go on with new rows from where the last call ended; the first call is `fit`.

        Earlier rows aren't kept. The new ones are taken to stand for all that were seen, and what the earlier ones
        taught fades as steps (300, or `max_steps`) are taken: rows should come in random order. Scaling, categories and
        the number of inducing points stay those of the first call. For variational inference.
        """
        if not hasattr(self, "fit_"):
            return self.fit(X, y, sample_weight)
        self._train_more(X, y, sample_weight)
        return self

    def predict(self, X, return_std: bool = False, return_cov: bool = False):
        """The mean of new observations; also their standard deviation, noise included, or the covariance between them.

        The covariance is [N, N], with several outputs [N, N, P]. Behind inner layers it is estimated from draws.
        """
        if return_std and return_cov:
            raise InputError("Ask for one of return_std and return_cov.")
        x = self._inputs(X)
        mean, variance = (np.asarray(values) for values in predict_moments(self.fit_, x))
        if return_cov:
            return self._shaped(mean), self._shaped(self._covariance(x, variance))
        return (self._shaped(mean), self._shaped(np.sqrt(variance))) if return_std else self._shaped(mean)

    def predict_quantiles(self, X, q=(0.05, 0.5, 0.95)) -> np.ndarray:
        """Quantiles of new observations: [N, len(q)], or [N, P, len(q)] with several outputs."""
        x = self._inputs(X)
        return self._last(predict_quantiles(self.fit_, x, q))

    def predict_interval(self, X, level: float = 0.9) -> np.ndarray:
        """Lower and upper end of the central interval that holds a new observation with this probability: [N, 2]."""
        if not 0 < level < 1:
            raise InputError(f"predict_interval(level=...) must lie between 0 and 1; got {level}.")
        return self.predict_quantiles(X, [0.5 - 0.5 * level, 0.5 + 0.5 * level])

    def predict_dist(self, X) -> AbstractDistribution:
        """The distribution of new observations, [N, P]: density, cdf, quantiles, CRPS. For Gaussian noise."""
        x = self._inputs(X)
        return predict(self.fit_, x)

    def sample_y(self, X, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draws of new observations: [N, n_samples], or [N, P, n_samples]. Rows of one draw belong to one function."""
        x, seed = self._inputs(X), int(check_random_state(random_state).randint(2**31 - 1))
        return self._last(self._draws(x, n_samples, seed))

    def score(self, X, y, sample_weight=None) -> float:
        """R², averaged over outputs; missing targets don't count."""
        targets = read_numbers(y)
        means = np.asarray(self.predict(X)).reshape(targets.shape)
        scores = []
        for column, mean in zip(targets.T, means.T, strict=True):
            there = ~np.isnan(column)
            weights = None if sample_weight is None else np.asarray(sample_weight)[there]
            scores.append(r2_score(column[there], mean[there], sample_weight=weights))
        return float(np.mean(scores))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _read_targets(self, y, num_rows, *, learn):
        targets = read_numbers(y, num_rows)
        if learn:
            self._is_single = np.asarray(y).ndim == 1
            self.n_outputs_ = targets.shape[1]
        elif targets.shape[1] != self.n_outputs_:
            raise InputError(f"y has {targets.shape[1]} outputs; the first call had {self.n_outputs_}.")
        return targets

    def _covariance(self, x: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Between new observations, [N, N, P]: exactly where they are jointly Gaussian, else of draws."""
        model, joint = self.fit_.model, None
        if len(model.layers) == 1 and isinstance(model.likelihood, GaussianNoise):
            joint = predict_jointly(self.fit_, x)
        if isinstance(joint, AbstractJointGaussian):
            between = np.moveaxis(np.array(joint.covariance), 0, -1)
        else:
            draws = self._draws(x, NUM_DRAWS, 0)
            centred = draws - draws.mean(axis=0)
            between = np.einsum("snp,smp->nmp", centred, centred) / (NUM_DRAWS - 1)
        rows = np.arange(len(x))
        between[rows, rows] = variance
        return between

    def _draws(self, x: np.ndarray, num_draws: int, seed: int) -> np.ndarray:
        """New observations [S, N, P] that belong to functions, as many at a time as memory allows."""
        at_once = max(1, MOST_ENTRIES // len(x) ** 2)
        counts = [min(at_once, num_draws - start) for start in range(0, max(num_draws, 1), at_once)]
        drawn = [sample_functions(self.fit_, x, count, seed=seed + place) for place, count in enumerate(counts)]
        return np.concatenate(drawn)

    def _last(self, values: ArrayLike) -> np.ndarray:
        """[K, N, P] with K as the last axis, and without P where the targets hadn't it."""
        values = np.moveaxis(np.asarray(values), 0, -1)
        return values[:, 0] if self._is_single else values

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        """Outputs are the last axis; without it where the targets had none."""
        return values[..., 0] if self._is_single else values
