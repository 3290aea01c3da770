"""Predictions against what was observed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..distributions import AbstractDistribution
from ._style import BLUE, GREY, axis_or_new, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def predictions(y, distribution: AbstractDistribution, *, level: float = 0.9, ax: Axes | None = None) -> Axes:
    """Every held-out row as its predictive mean and central interval, over the observed value."""
    low, high = distribution.interval(level)
    return intervals(y, distribution.mean, low, high, level=level, ax=ax)


def intervals(
    y: ArrayLike, mean: ArrayLike, low: ArrayLike, high: ArrayLike, *, level: float = 0.9, ax: Axes | None = None
) -> Axes:
    """`predictions` from means and the ends of intervals."""
    ax = axis_or_new(ax)
    observed, mean, low, high = (np.asarray(values).ravel() for values in (y, mean, low, high))
    edge = [np.nanmin([observed, low]), np.nanmax([observed, high])]
    ax.plot(edge, edge, color=GREY, linewidth=1, zorder=1)
    ax.vlines(observed, low, high, color=BLUE, alpha=0.35, linewidth=1.5, zorder=2, label=f"{level:.0%} interval")
    ax.scatter(observed, mean, s=12, color=BLUE, zorder=3, label="mean")
    ax.set(xlabel="observed", ylabel="predicted", title="Held-out rows")
    ax.legend(frameon=False, loc="upper left")
    return tidy(ax)
