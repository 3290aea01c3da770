"""Whether predicted variances are as large as they should be, and where they grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..data import Dataset
from ..distributions import AbstractDistribution
from ..fits import AbstractFit
from ..prediction import predict
from ._style import BLUE, GREY, axis_or_new, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def variance_by_distance(
    fitted: AbstractFit,
    train: Dataset,
    test: Dataset,
    *,
    output: int = 0,
    num_bins: int = 10,
    color: str = BLUE,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The predicted standard deviation of every test row over its distance to the nearest training row, and medians of
    bins with equally many rows [STAR, Figure 2, left]. Distances are between scaled inputs, as the model sees them."""
    from scipy.spatial import KDTree

    ax = axis_or_new(ax)
    seen, new = (np.asarray(fitted.model.to_model_units(data).x) for data in (train, test))
    distance = KDTree(seen).query(new)[0]
    deviation = np.asarray(predict(fitted, test.x).stddev)[:, output]
    ax.scatter(distance, deviation, s=8, color=color, alpha=0.3, linewidth=0)
    medians = [(np.median(distance[rows]), np.median(deviation[rows])) for rows in _bins(distance, num_bins)]
    ax.plot(*np.transpose(medians), color=color, linewidth=2, marker="o", markersize=4, label=label)
    ax.set(xlabel="distance to the nearest training row", ylabel="predicted standard deviation")
    ax.set_title("Uncertainty away from the data")
    return tidy(ax)


def error_by_variance(
    y,
    distribution: AbstractDistribution,
    *,
    num_bins: int = 10,
    color: str = BLUE,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Mean squared error over mean predicted variance, in bins of equally many rows by that variance [STAR, Figure 2,
    right]. Above the diagonal, the variance is too small."""
    ax = axis_or_new(ax)
    observed = np.asarray(y).reshape(np.shape(distribution.mean))
    there = ~np.isnan(observed)
    error = (observed - np.asarray(distribution.mean))[there] ** 2
    variance = np.asarray(distribution.variance)[there]
    means = np.array([(variance[rows].mean(), error[rows].mean()) for rows in _bins(variance, num_bins)])
    ax.axline((means[0, 0],) * 2, (2.0 * means[0, 0],) * 2, color=GREY, linewidth=1)
    ax.plot(*means.T, color=color, linewidth=2, marker="o", markersize=4, label=label)
    ax.set(xscale="log", yscale="log", xlabel="predicted variance", ylabel="mean squared error")
    _few_ticks(ax)
    ax.set_title("Errors by predicted variance")
    return tidy(ax)


def _bins(values: np.ndarray, number: int) -> list[np.ndarray]:
    """The rows from smallest to largest, in `number` parts of (nearly) equal size."""
    return np.array_split(np.argsort(values, kind="stable"), min(number, len(values)))


def _few_ticks(ax: Axes) -> None:
    """1, 2, 5, 10, … on logarithmic axes, as plain numbers, where matplotlib would crowd a short range."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
