"""The look that all plots share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE = "#2f6db3"
ORANGE = "#d9772b"
GREY = "#8a8f98"


def axis_or_new(ax: Axes | None) -> Axes:
    """The given axis, or one on a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(4.8, 3.6), layout="constrained")[1]


def tidy(ax: Axes) -> Axes:
    """Only the spines and the grid that help reading."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    return ax
