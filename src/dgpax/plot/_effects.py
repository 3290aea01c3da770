"""What inputs do to f, on average over all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..sensitivity import PairEffect, Sensitivity
from ._style import BLUE, GREY, axis_or_new, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def main_effect(found: Sensitivity, index: int, *, level: float = 0.9, ax: Axes | None = None) -> Axes:
    """The mean of f over one input, with an interval from the functions that were drawn."""
    ax = axis_or_new(ax)
    values, drawn = found.main[index]
    words = any(isinstance(value, str) for value in values)
    x = np.arange(len(values)) if words else np.asarray(values, float)
    low, high = np.quantile(drawn, (0.5 - 0.5 * level, 0.5 + 0.5 * level), axis=0)
    mean = drawn.mean(axis=0)
    if words or len(values) < 5:
        ax.errorbar(x, mean, np.stack([mean - low, high - mean]).clip(0.0), fmt="o", color=BLUE, ecolor=GREY)
        ax.set_xticks(x, [f"{value}" for value in values])
    else:
        ax.fill_between(x, low, high, color=BLUE, alpha=0.3, linewidth=0)
        ax.plot(x, mean, color=BLUE, linewidth=2)
    ax.set(xlabel=found.names[index], ylabel="mean of f")
    return tidy(ax)


def pair_effect(effect: PairEffect, *, ax: Axes | None = None) -> Axes:
    """The mean of f over two inputs, as colours."""
    ax = axis_or_new(ax)
    x, y = (range(len(values)) if isinstance(values[0], str) else values for values in (effect.first, effect.second))
    shown = ax.pcolormesh(x, y, effect.mean.T, shading="nearest", cmap="viridis", rasterized=True)
    for axis, at, values in ((ax.xaxis, x, effect.first), (ax.yaxis, y, effect.second)):
        if isinstance(values[0], str):
            axis.set_ticks(list(at), labels=list(values))
    ax.set(xlabel=effect.names[0], ylabel=effect.names[1])
    ax.figure.colorbar(shown, ax=ax, label="mean of f")
    return ax
