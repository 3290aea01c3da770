"""Whether stated probabilities come true."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..distributions import AbstractDistribution
from ..metrics import pit
from ._style import BLUE, GREY, axis_or_new, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def calibration(y, distribution: AbstractDistribution, *, ax: Axes | None = None) -> Axes:
    """How often the truth lies below each predictive quantile; on the diagonal, predictions are calibrated.

    The band holds 95% of the curves of a calibrated model with this many rows, point by point.
    """
    ax = axis_or_new(ax)
    ranks = np.sort(np.asarray(pit(y, distribution)).ravel())
    ranks = ranks[~np.isnan(ranks)]
    levels = np.linspace(0.0, 1.0, 101)
    observed = np.searchsorted(ranks, levels, side="right") / len(ranks)
    margin = 1.96 * np.sqrt(levels * (1.0 - levels) / len(ranks))
    ax.fill_between(levels, levels - margin, levels + margin, color=GREY, alpha=0.2, linewidth=0, label="by chance")
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    ax.plot(levels, observed, color=BLUE, linewidth=2, label="this model")
    ax.set(xlabel="predicted probability", ylabel="observed frequency", title="Calibration", xlim=(0, 1), ylim=(0, 1))
    ax.legend(frameon=False, loc="upper left")
    return tidy(ax)
