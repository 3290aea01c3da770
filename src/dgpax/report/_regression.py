"""How good, and how honest, predictions of numbers are on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from ..metrics import chance_band, curve_of_ranks
from ._html import Tag, section, table, tag
from ._judge import LEVELS, Regression
from ._judgement import Judgement
from ._svg import Axes, band, bars, chart, line, points, spanning, whiskers
from ._text import number, percent, shown
from ._verdict import Finding, about_error

MOST_POINTS = 400
MOST_OUTPUTS = 4
WORST_ROWS = 5
MEANINGS = {
    "rmse": "root mean squared error, in the units of the target",
    "mae": "mean absolute error, in the units of the target",
    "smse": "squared error relative to predicting the mean: 0 is perfect, 1 is useless",
    "nlpd": "−log density of what happened, on average; smaller is better",
    "crps": "error of the whole distribution, in the units of the target; smaller is better",
    "calibration_error": "mean gap between stated and observed probability; 0 is perfect",
    "coverage": "share of the targets inside their intervals",
    "mean_width": "mean width of these intervals, in the units of the target",
}


def findings(judged: Regression) -> list[Finding]:
    """How large the errors are."""
    return [about_error(judged.scores["smse"], number(judged.scores["rmse"]))]


def sections(judgement: Judgement, judged: Regression, names: Sequence[str]) -> list[Tag]:
    """Metrics, calibration and predictions."""
    low, high = judged.intervals[judged.level]
    what = (
        f"the predicted mean and its {percent(judged.level)} interval, over what was observed. Intervals should cross "
    )
    shown = [
        _predictions(judged.observed[:, i], judged.mean[:, i], low[:, i], high[:, i], label, f"{what}the diagonal.")
        for i, label in enumerate(names[:MOST_OUTPUTS])
    ]
    return [
        _metrics(
            judged,
            f"{judgement.how} Intervals are central, at {percent(judged.level)}. {judged.note}",
            shown,
            _worst(judgement, judged),
        ),
        section(
            "calibration",
            "Do stated probabilities come true?",
            tag("div", calibration_curve(judged.ranks), pit_histogram(judged.ranks), class_="figures"),
            tag("h3", "Coverage"),
            table(
                ("stated", "held-out rows inside", "mean width"),
                [(percent(level), percent(judged.covered[level]), number(judged.width(level))) for level in LEVELS],
                numbers=0,
            ),
        ),
    ]


def calibration_curve(ranks: np.ndarray) -> Tag:
    """How often the truth lies below each predictive quantile."""
    levels = np.linspace(0.0, 1.0, 101)
    _, observed = curve_of_ranks(jnp.asarray(ranks), levels)
    low, high = chance_band(levels, int(np.sum(~np.isnan(ranks))))
    axes = Axes((0.0, 1.0), (0.0, 1.0), "predicted probability", "observed frequency")
    return chart(
        "Calibration",
        "How often the truth lies below each predicted quantile. On the diagonal, probabilities are right; the grey "
        "band holds 95% of what chance does to a calibrated model.",
        axes,
        band(axes, levels, low, high, "chance"),
        line(axes, [0, 1], [0, 1], "diagonal"),
        line(axes, levels, np.asarray(observed)),
    )


def pit_histogram(ranks: np.ndarray) -> Tag:
    """The probability integral transform of the held-out targets."""
    ranks = ranks[~np.isnan(ranks)]
    num_bins = 10 if len(ranks) < 500 else 20
    counts, edges = np.histogram(ranks, bins=num_bins, range=(0.0, 1.0))
    low, high = (num_bins * float(edge) for edge in chance_band(1.0 / num_bins, len(ranks)))
    heights = counts * num_bins / len(ranks)
    axes = Axes((0.0, 1.0), (0.0, 1.1 * max(float(heights.max()), high)), "rank in its prediction", "density")
    return chart(
        "Where the truth fell (PIT)",
        "Flat is right. A hump in the middle: intervals are too wide; at both ends: too narrow; on one side: "
        "predictions are too high or too low. Grey: chance.",
        axes,
        bars(axes, edges, heights),
        band(axes, [0, 1], [low, low], [high, high], "chance"),
        line(axes, [0, 1], [1, 1], "diagonal"),
    )


def _metrics(judged: Regression, note: str, figures: list[Tag], more: list[Tag]) -> Tag:
    rows = [(score, number(value), MEANINGS[score]) for score, value in judged.scores.items()]
    return section(
        "metrics",
        "On held-out rows",
        tag("p", f"{len(judged.observed):,} rows. {note}"),
        tag("div", table(("metric", "value", "meaning"), rows, wide=(2,)), figures, class_="figures"),
        more,
    )


def _predictions(observed, mean, low, high, label: str, what: str) -> Tag:
    rows = np.unique(np.linspace(0, len(observed) - 1, min(len(observed), MOST_POINTS)).astype(int))
    some = f" {len(rows)} of {len(observed):,} rows are shown." if len(rows) < len(observed) else ""
    observed, mean, low, high = (values[rows] for values in (observed, mean, low, high))
    span = spanning(observed, low, high)
    axes = Axes(span, span, f"observed {label}", "predicted")
    return chart(
        f"Predictions of {label}",
        f"Each held-out row: {what}{some}",
        axes,
        line(axes, span, span, "diagonal"),
        whiskers(axes, observed, low, high),
        points(axes, observed, mean),
    )


def _worst(judgement: Judgement, judged: Regression) -> list[Tag]:
    """The rows that surprised the model most, by their distance from the mean in standard deviations."""
    surprise = np.nan_to_num(np.abs(judged.observed - judged.mean) / np.maximum(judged.stddev, 1e-300))
    low, high = judged.intervals[judged.level]
    largest = np.argsort(-surprise, axis=None, kind="stable")[:WORST_ROWS]
    rows = [
        (
            *_called(judgement, int(row)),
            number(float(judged.observed[row, p])),
            number(float(judged.mean[row, p])),
            f"{number(float(low[row, p]))} … {number(float(high[row, p]))}",
            f"{surprise[row, p]:.1f}",
        )
        for row, p in zip(*np.unravel_index(largest, surprise.shape), strict=True)
    ]
    which = ["line of the file" if judgement.lines else "held-out row"]
    which += [] if judgement.names is None else [shown(judgement.names[0], 30)]
    head = (*which, "observed", "predicted", f"{percent(judged.level)} interval", "deviations off")
    return [tag("h3", "The rows that surprised it most"), table(head, rows, wide=(len(head) - 1,), numbers=0)]


def _called(judgement: Judgement, row: int) -> list[str]:
    """Where a row is found: its line in the file, and what the table calls it."""
    place = [f"{judgement.lines[row] if judgement.lines else row + 1}"]
    return place if judgement.names is None else [*place, shown(judgement.names[1][row], 30)]
