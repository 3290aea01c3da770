"""Predictions against what was observed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..distributions import AbstractDistribution
from ._style import BLUE, GREY, axis_or_new, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def predictions(y, distribution: AbstractDistribution, *, level: float = 0.9, ax: Axes | None = None) -> Axes:
    """Every held-out row as its predictive mean and central interval, over the observed value."""
    ax = axis_or_new(ax)
    observed = np.asarray(y).ravel()
    low, high = (np.asarray(bound).ravel() for bound in distribution.interval(level))
    mean = np.asarray(distribution.mean).ravel()
    edge = [min(observed.min(), low.min()), max(observed.max(), high.max())]
    ax.plot(edge, edge, color=GREY, linewidth=1, zorder=1)
    ax.vlines(observed, low, high, color=BLUE, alpha=0.35, linewidth=1.5, zorder=2, label=f"{level:.0%} interval")
    ax.scatter(observed, mean, s=12, color=BLUE, zorder=3, label="mean")
    ax.set(xlabel="observed", ylabel="predicted", title="Held-out rows")
    ax.legend(frameon=False, loc="upper left")
    return tidy(ax)
