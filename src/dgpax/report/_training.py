"""The course of a fit."""

from __future__ import annotations

import numpy as np

from ..fits import FitReport
from ._html import Tag, section, table, tag
from ._svg import Axes, band, chart, line
from ._text import number, shown

MOST_STEPS = 160
IGNORED_SHARE = 0.05


def training_section(report: FitReport) -> Tag:
    """The objective over the steps, how it ended, and what was unusual."""
    words = [
        ("inference", f"{report.inference}, by {report.engine}"),
        ("stopped because", report.stopped_because),
        ("steps", f"{report.steps:,}"),
        ("seconds", f"{report.seconds:.1f}"),
        ("trained parameters", f"{report.num_parameters:,}"),
        ("objective", f"{number(report.objective_start)} at the start, {number(report.objective_end)} at the end"),
        ("rejected steps", f"{report.rejected_steps:,}"),
        ("largest jitter", number(report.largest_jitter)),
        ("clipped variances", f"{report.clipped_variances:,}"),
        ("went on from checkpoints at", ", ".join(map(str, report.resumed_at)) or "none"),
        *report.shown_details.items(),
    ]
    curve = training_curve(report.history) if len(report.history) > 1 else None
    notes = [tag("p", shown(note, 500)) for note in report.notes]
    return section(
        "training",
        "Training",
        tag("div", curve, table(("", ""), words), class_="figures"),
        notes,
    )


def training_curve(history: np.ndarray) -> Tag:
    """The objective: its mean over a few steps, and the range of these."""
    values = np.asarray(history, float)
    parts = np.array_split(values, min(len(values), MOST_STEPS))
    middle, low, high = (np.array([of(part) for part in parts]) for of in (np.mean, np.min, np.max))
    steps = 1.0 + np.cumsum([0, *map(len, parts[:-1])])
    settled = slice(int(IGNORED_SHARE * len(parts)), None)
    y_range = _room(low[settled], high[settled])
    axes = Axes((float(steps[0]), float(steps[-1])), y_range, "step", "objective")
    below = " The first steps lie below the picture." if np.nanmin(low) < y_range[0] else ""
    noisy = " The band is the range of single steps." if len(parts) < len(values) else ""
    return chart(
        "What was maximised",
        f"It should have levelled off; if it still rises at the end, train longer.{noisy}{below}",
        axes,
        band(axes, steps, low, high),
        line(axes, steps, middle),
    )


def _room(low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    """From the lowest to the highest, but not so far down that the last half becomes a flat line."""
    late = len(low) // 2
    bottom, top = float(np.nanmin(low)), float(np.nanmax(high))
    settled = max(top - float(np.nanmin(low[late:])), 0.02 * (top - bottom))
    bottom = max(bottom, top - 6.0 * settled)
    margin = 0.05 * (top - bottom) or 0.5 * (abs(top) or 1.0)
    return bottom - margin, top + margin
