"""A function of one input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..data import Dataset
from ..errors import InputError
from ..fits import AbstractFit
from ..prediction import predict, predict_latent
from ._style import BLUE, GREY, axis_or_new, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def function(
    fitted: AbstractFit,
    data: Dataset,
    *,
    output: int = 0,
    level: float = 0.95,
    margin: float = 0.15,
    ax: Axes | None = None,
) -> Axes:
    """Mean, interval of the function (dark) and of new observations (light), and the data, for one input column."""
    if data.num_inputs != 1:
        raise InputError(f"plot.function draws one input column; the data has {data.num_inputs}.")
    ax = axis_or_new(ax)
    x, y = np.asarray(data.x)[:, 0], np.asarray(data.y)[:, output]
    pad = margin * (x.max() - x.min() or 1.0)
    grid = np.linspace(x.min() - pad, x.max() + pad, 400)
    for distribution, alpha in ((predict(fitted, grid[:, None]), 0.15), (predict_latent(fitted, grid[:, None]), 0.3)):
        low, high = (np.asarray(bound)[:, output] for bound in distribution.interval(level))
        ax.fill_between(grid, low, high, color=BLUE, alpha=alpha, linewidth=0)
    ax.plot(grid, np.asarray(distribution.mean)[:, output], color=BLUE, linewidth=2)
    ax.scatter(x, y, s=10, color=GREY, zorder=3)
    ax.set(xlabel=(data.input_names or ("x",))[0], ylabel=(data.output_names or ("y",) * (output + 1))[output])
    return tidy(ax)
