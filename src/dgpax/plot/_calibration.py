"""Whether stated probabilities come true."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ..distributions import AbstractDistribution
from ..metrics import chance_band, curve_of_ranks, pit
from ._style import BLUE, GREY, axis_or_new, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def calibration(y, distribution: AbstractDistribution, *, ax: Axes | None = None) -> Axes:
    """How often the truth lies below each predictive quantile; on the diagonal, predictions are calibrated.

    The band holds 95% of the curves of a calibrated model with this many rows, point by point.
    """
    return ranks(pit(y, distribution), ax=ax)


def ranks(pits: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """`calibration` from PIT values, NaN where a target is missing."""
    ax, pits, levels = axis_or_new(ax), jnp.asarray(pits), np.linspace(0.0, 1.0, 101)
    _, observed = curve_of_ranks(pits, levels)
    low, high = chance_band(levels, int(np.sum(~np.isnan(pits))))
    ax.fill_between(levels, low, high, color=GREY, alpha=0.2, linewidth=0, label="by chance")
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    ax.plot(levels, np.asarray(observed), color=BLUE, linewidth=2, label="this model")
    ax.set(xlabel="predicted probability", ylabel="observed frequency", title="Calibration", xlim=(0, 1), ylim=(0, 1))
    ax.legend(frameon=False, loc="upper left")
    return tidy(ax)
