"""The course of a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..inference import FitReport
from ._style import BLUE, axis_or_new, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def training(report: FitReport, *, ax: Axes | None = None) -> Axes:
    """The objective over the steps."""
    ax = axis_or_new(ax)
    ax.plot(report.history, color=BLUE, linewidth=1.8)
    ax.set(xlabel="step", ylabel="objective", title=f"{report.inference}, {report.engine}")
    return tidy(ax)
