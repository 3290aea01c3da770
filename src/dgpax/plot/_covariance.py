"""Which inducing outputs depend on which."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..fits import Fit
from ..prediction import inducing_covariance
from ._style import axis_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def covariance_blocks(fitted: Fit, *, decades: float = 4.0, ax: Axes | None = None) -> Axes:
    """log₁₀ |S| of the covariance S of all whitened inducing outputs [STAR, Figure 1].

    Thick lines part the layers, thin ones the outputs of a layer. Grey is zero: what the family leaves out. What is
    smaller than the largest entry by more than `decades` has the palest colour.
    """
    ax = axis_or_new(ax)
    covariance, layer, process = inducing_covariance(fitted)
    size = np.abs(covariance)
    shown = np.ma.masked_invalid(np.log10(size, where=size > 0, out=np.full_like(size, np.nan)))
    image = ax.imshow(shown, cmap="YlGnBu", vmin=shown.max() - decades, vmax=shown.max(), interpolation="nearest")
    ax.set_facecolor("0.88")
    _draw_lines(ax, process, color="white", linewidth=0.8)
    _draw_lines(ax, layer, color="black", linewidth=1.2)
    centres = [float(np.mean(np.flatnonzero(layer == index))) for index in np.unique(layer)]
    names = [f"layer {index}" for index in np.unique(layer)]
    ax.set_xticks(centres, names)
    ax.set_yticks(centres, names, rotation=90, va="center")
    ax.tick_params(length=0)
    ax.figure.colorbar(image, ax=ax, label="log₁₀ |covariance|", shrink=0.85)
    ax.set_title("Covariance of the inducing outputs")
    return ax


def _draw_lines(ax: Axes, group: np.ndarray, **style) -> None:
    """Where one group ends and the next begins."""
    for end in np.flatnonzero(np.diff(group)) + 0.5:
        ax.axhline(end, **style)
        ax.axvline(end, **style)
