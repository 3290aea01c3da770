"""The fitted function, where it can be drawn: over one input."""

from __future__ import annotations

import numpy as np

from ..data import Dataset
from ..fits import AbstractFit
from ..likelihoods import GaussianNoise
from ..prediction import predict, predict_latent
from ._html import Tag, section, tag
from ._svg import Axes, band, chart, line, points, spanning
from ._text import percent

GRID = 150
MOST_POINTS = 600


def function_chart(fitted: AbstractFit, data: Dataset, level: float, seed: int) -> Tag | None:
    """The first output over the input, if there is one input and the noise is Gaussian; else None."""
    if data.num_inputs != 1 or not isinstance(fitted.model.likelihood, GaussianNoise):
        return None
    x, y = np.asarray(data.x)[:, 0], np.asarray(data.y)[:, 0]
    grid = np.linspace(*spanning(x, margin=0.15), GRID).astype(x.dtype)
    wide, narrow = (predict_(fitted, grid[:, None], seed=seed) for predict_ in (predict, predict_latent))
    (low, high), (inner_low, inner_high) = (
        [np.asarray(edge)[:, 0] for edge in distribution.interval(level)] for distribution in (wide, narrow)
    )
    some = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_POINTS)).astype(int))
    label = (data.input_names or ("x0",))[0]
    axes = Axes((float(grid[0]), float(grid[-1])), spanning(y, low, high), label, (data.output_names or ("y0",))[0])
    figure = chart(
        "The function",
        f"Its mean, {percent(level)} intervals of the function (dark) and of new observations (light), and the data.",
        axes,
        band(axes, grid, low, high),
        band(axes, grid, inner_low, inner_high),
        line(axes, grid, np.asarray(wide.mean)[:, 0]),
        points(axes, x[some], y[some], "point-ink"),
    )
    return section("function", "What was learnt", tag("div", figure, class_="figures"))
