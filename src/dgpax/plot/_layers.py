"""What the layers inside a deep model believe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..data import Dataset
from ..errors import InputError
from ..kernels import RBF
from ..prediction import LayerDraws, curvature_given_points
from ._style import BLUE, GREY, ORANGE, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LINES = 50


def layers(
    draws: LayerDraws,
    data: Dataset | None = None,
    *,
    column: int = 0,
    output: int = 0,
    color: str = BLUE,
    axes: Sequence[Axes] | None = None,
) -> Sequence[Axes]:
    """One panel per layer, and one for their composition with the data: a line per draw [CU, Figure 5].

    Lines that fan out in the panels of the layers and lie on each other in the last are different compositions of the
    same function. Of layers with several inputs and outputs, one of each is shown.
    """
    panels = [
        (np.asarray(at), np.asarray(values), f"layer {index}")
        for index, (at, values) in enumerate(zip(draws.at, draws.functions, strict=True))
    ]
    panels.append((np.asarray(draws.x), np.asarray(draws.composition), "composition"))
    axes = _row_of_axes(len(panels)) if axes is None else axes
    if len(axes) != len(panels):
        raise InputError(f"plot.layers(axes=...) needs {len(panels)} axes, one more than layers; got {len(axes)}.")
    for ax, (x, values, title) in zip(axes, panels, strict=True):
        across, along = min(column, x.shape[1] - 1), min(output, values.shape[2] - 1)
        order = np.argsort(x[:, across])
        ax.plot(x[order, across], values[:MOST_LINES, order, along].T, color=color, alpha=0.35, linewidth=0.9)
        ax.set(title=title, xlabel="input" if x.shape[1] == 1 else f"input {across}")
        tidy(ax)
    if data is not None:
        x, y = np.asarray(data.x), np.asarray(data.y)
        axes[-1].scatter(x[:, min(column, x.shape[1] - 1)], y[:, output], s=8, color="black", zorder=3)
    return axes


def variance_curvature(
    num_inducing: Sequence[int] = (2, 3, 4, 5, 6, 8, 10), *, axes: Sequence[Axes] | None = None
) -> Sequence[Axes]:
    """A GP's variance between M evenly spaced inducing points, ± 3 length scales; its second derivative; and the least
    second derivative over M: noise in the inputs can lower the variance only where it is below zero [CU, Figure 3]."""
    axes = _row_of_axes(3) if axes is None else axes
    grid, smallest = np.linspace(-3.0, 3.0, 241)[:, None], []
    for place, size in enumerate(num_inducing):
        found = curvature_given_points(RBF(1.0), np.linspace(-3.0, 3.0, size)[:, None], grid)
        curvature = 2.0 * np.asarray(found.curvature)[:, 0, 0]
        smallest.append(curvature.min())
        shade = 0.25 + 0.75 * place / max(len(num_inducing) - 1, 1)
        for ax, values in zip(axes, (np.asarray(found.variance)[:, 0], curvature), strict=False):
            ax.plot(grid[:, 0], values, color=BLUE, alpha=shade, label=f"M = {size}")
    axes[2].plot(num_inducing, smallest, color=ORANGE, marker="o", markersize=4)
    axes[2].axhline(0.0, color=GREY, linewidth=1)
    axes[0].set(title="variance", xlabel="input, in length scales")
    axes[1].set(title="its second derivative", xlabel="input, in length scales")
    axes[2].set(title="least second derivative", xlabel="M")
    axes[0].set_ylim(top=1.5)
    axes[0].legend(frameon=False, fontsize=7, ncols=3, loc="upper center")
    return [tidy(ax) for ax in axes]


def _row_of_axes(number: int) -> Sequence[Axes]:
    import matplotlib.pyplot as plt

    return plt.subplots(1, number, figsize=(3.2 * number, 2.8), layout="constrained")[1]
