"""How a study stands: what came out, what matters, and what the next run is expected to bring."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..design import Study
from ..errors import InputError
from ..sensitivity import Sensitivity, sobol_indices
from ._html import Tag, name, section, table, tag
from ._page import document
from ._svg import Axes, band, chart, line, points, spanning, whiskers
from ._text import shown
from ._verdict import Finding, cards

MOST_SLICES = 12


def write_study(path: str | os.PathLike[str], study: Study, *, title: str = "A study", seed: int = 0) -> Path:
    """Write a report of a study: one HTML file that needs nothing else, no network and no script.

    It needs two runs or more that have values: its model is asked what matters.
    """
    if study.num_runs < 2:
        raise InputError(f"A report of a study needs at least 2 runs; there are {study.num_runs}. Tell it some.")
    found = sobol_indices(study.fitted(), study.space, seed=seed)
    parts = [
        cards([_next_run(study)]),
        _trace(study),
        _effects(study, found),
        _indices(found),
        _gains(study),
    ]
    text = document(title, [part for part in parts if part is not None], "What came out, what matters, what is next.")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _next_run(study: Study) -> Finding:
    word, _, sentence = study.advice.partition(": ")
    return Finding(word, sentence, "good") if sentence else Finding("Too early", study.advice)


def _trace(study: Study) -> Tag:
    y, run = study.y[:, 0], np.arange(1, study.num_runs + 1)
    good = ~np.isnan(y)
    axes = Axes(spanning(run), spanning(y), "run", _output(study))
    failed = int(np.sum(~good))
    caption = f"What came out of {study.num_runs} runs{f', {failed} of which failed' if failed else ''}."
    best = [tag("p", _extreme(study, which)) for which in ("smallest", "largest")]
    return section("runs", "Runs", chart("Values", caption, axes, points(axes, run[good], y[good])), *best)


def _extreme(study: Study, which: str) -> str:
    index = int(np.nanargmin(study.y[:, 0]) if which == "smallest" else np.nanargmax(study.y[:, 0]))
    where = ", ".join(f"{shown(key)} = {_written(value)}" for key, value in study.space.words(study.x)[index].items())
    return f"The {which} value, {study.y[index, 0]:.4g}, came out of run {index + 1}: {where}."


def _written(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else shown(value)


def _effects(study: Study, found: Sensitivity) -> Tag:
    ends = [np.quantile(drawn, (0.05, 0.95), axis=0) for _, drawn in found.main]
    span = spanning(*ends)
    figures = []
    for i in found.order[:MOST_SLICES]:
        values, drawn = found.main[i]
        words = isinstance(values[0], str)
        x = np.arange(len(values), dtype=float) if words else np.asarray(values, float)
        axes = Axes(spanning(x), span, shown(found.names[i]), _output(study))
        low, high = ends[i]
        if len(values) > 4 and not words:
            marks = [band(axes, x, low, high), line(axes, x, drawn.mean(axis=0))]
        else:
            marks = [whiskers(axes, x, low, high), points(axes, x, drawn.mean(axis=0))]
        listed = ", ".join(f"{number}: {value}" for number, value in enumerate(values)) if words else ""
        figures.append(
            chart(found.names[i], f"Over all other inputs, with 90% intervals. {listed}".strip(), axes, *marks)
        )
    return section("effects", "What every input does, on average", tag("div", figures, class_="figures"))


def _indices(found: Sensitivity) -> Tag:
    first, total = found.interval()
    rows = [
        [
            name(found.names[i]),
            f"{found.first[:, i].mean():.3f} ({first[0, i]:.3f}, {first[1, i]:.3f})",
            f"{found.total[:, i].mean():.3f} ({total[0, i]:.3f}, {total[1, i]:.3f})",
        ]
        for i in found.order
    ]
    return section(
        "sensitivity",
        "Which inputs matter",
        tag("p", "Shares of the variance over the box, with 90% intervals.", class_="muted"),
        table(("input", "alone", "with all others"), rows),
    )


def _gains(study: Study) -> Tag | None:
    if not study.worth:
        return None
    runs, worth = np.transpose(study.worth)
    axes = Axes(spanning(runs), spanning(worth, np.zeros(1)), "runs", "share of the spread")
    caption = f"What the next run was expected to be worth by {type(study.criterion).__name__}."
    return section("worth", "What more runs bring", chart("Expected gain", caption, axes, line(axes, runs, worth),
                   points(axes, runs, worth)))  # fmt: skip


def _output(study: Study) -> str:
    return study.outputs[0] if study.outputs else "value"
