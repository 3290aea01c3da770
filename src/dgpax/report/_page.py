"""One self-contained HTML file about a fitted model."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .. import parameters
from ..data import Dataset, Encoding
from ..errors import InputError
from ..fits import AbstractFit, require_fit
from . import _classification, _regression
from ._columns import ColumnSummary, data_section
from ._function import function_chart
from ._honesty import Honesty, honesty
from ._html import Node, Tag, name, section, table, tag
from ._inputs import inputs_of
from ._judge import Classification
from ._judgement import Judgement, judgement
from ._layers import heaviest_of_many, layers_section
from ._relevance import relevance_section
from ._style import CSS
from ._text import shown
from ._training import training_section
from ._verdict import about_honesty, cards, checks_section

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
LIBRARIES = ("dgpax", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy")
LONGEST_DETAIL = 1000
PARAMETER = ("name", "value", "shape", "dtype", "trained", "constraint", "prior")


def write(
    path: str | os.PathLike[str],
    fitted: AbstractFit,
    train: Dataset | None,
    test: Dataset | Judgement | None = None,
    **options: Any,
) -> Path:
    """Write a report of a fit: one HTML file that needs nothing else, no network and no script.

    `test` has the held-out rows that it is judged on, or is what `judgement` or `pooled` made of them; the options are
    those of `page`.
    """
    text = page(fitted, train, test, **options)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def page(
    fitted: AbstractFit,
    train: Dataset | None,
    test: Dataset | Judgement | None = None,
    *,
    title: str = "A fitted Gaussian process",
    level: float = 0.9,
    classes: Sequence[str] = (),
    columns: Sequence[ColumnSummary] | None = None,
    encoding: Encoding | None = None,
    details: Mapping[str, str] | None = None,
    seed: int = 0,
) -> str:
    """The report that `write` writes, as text.

    `level` is the probability of the intervals. `classes` are the names of the labels 0, 1, …; `columns` describe the
    table as it was before it became numbers, and `encoding` is what made it numbers: the categories of a column are
    then one input. `details` are shown under the settings (a command, a date). Without `train`, it says nothing about
    the training data. Given the same arguments, the text is the same.
    """
    require_fit(fitted, "report.page")
    judged = judgement(fitted, test, level=level, seed=seed) if isinstance(test, Dataset) else test
    held_out = None if judged is None else judged.data
    known = train if train is not None else held_out
    if known is None:
        raise InputError("A report needs rows: train, test or both.")
    parts = [
        *([] if judged is None else _judged(judged, encoding, classes)),
        function_chart(fitted, known, level, seed),
        relevance_section(fitted, known, encoding, seed),
        layers_section(fitted, known, seed),
        data_section(train, held_out, columns, classes),
        training_section(fitted.report),
        _parameters(fitted),
        _settings(fitted, details or {}, seed),
    ]
    target = ", ".join(shown(output) for output in known.output_names[:4])
    lead = f"How {target} is predicted, and whether to trust it." if target else "Can it be trusted?"
    return document(title, [part for part in parts if part is not None], lead)


def verdict(judged: Judgement, encoding: Encoding | None = None) -> Honesty:
    """Whether stated probabilities come true on the rows that were judged, and what that rests on."""
    data, unfinished = judged.data, judged.unfinished
    x, times = np.asarray(data.x), judged.times
    if isinstance(judged.scored, Classification):
        there = ~np.isnan(np.asarray(data.y)[:, 0])
        x, times = x[there], None if times is None else times[there]
    columns = {name: x[:, i] for i, name in enumerate(_names_of_inputs(data, encoding))}
    why = "" if unfinished is None else unfinished.stopped_because
    return honesty(judged.scored, columns, times, unfinished=why)


def _names_of_inputs(data: Dataset, encoding: Encoding | None) -> tuple[str, ...]:
    if encoding is not None:
        inputs_of(data, encoding)
        return encoding.output_names
    return data.input_names or tuple(f"x{i}" for i in range(data.num_inputs))


def _judged(judged: Judgement, encoding: Encoding | None, classes: Sequence[str]) -> list[Tag]:
    scored, data, found = judged.scored, judged.data, verdict(judged, encoding)
    if isinstance(scored, Classification):
        good = _classification.findings(scored)
        parts = _classification.sections(scored, classes, judged.how)
    else:
        names = data.output_names or tuple(f"y{i}" for i in range(data.num_outputs))
        good, parts = _regression.findings(scored), _regression.sections(judged, scored, names)
    first = cards([*good, *about_honesty(found, judged.unfinished)])
    return [first, *parts, checks_section(found)]


def _parameters(fitted: AbstractFit) -> Tag:
    rows = parameters.table(fitted.model).rows
    return section(
        "parameters",
        "Parameters",
        heaviest_of_many(fitted),
        tag("p", "Of the model, in standardised units.", class_="muted"),
        table(
            PARAMETER,
            [[name(path), *(shown(cell, 120) for cell in cells)] for path, *cells in rows],
            wide=range(2, len(PARAMETER)),
        ),
    )


def _settings(fitted: AbstractFit, details: Mapping[str, str], seed: int) -> Tag:
    devices = ", ".join(sorted({f"{device.platform} ({device.device_kind})" for device in jax.devices()}))
    rows: list[tuple[Node, Node]] = [(name(key), name(value, LONGEST_DETAIL)) for key, value in details.items()]
    rows += [
        ("likelihood", type(fitted.model.likelihood).__name__),
        ("inference", fitted.report.inference),
        ("seed of this report's draws", str(seed)),
        ("devices", devices),
        ("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        ("versions", ", ".join(f"{library} {importlib.metadata.version(library)}" for library in LIBRARIES)),
    ]
    return section("settings", "Settings and versions", table(("", ""), rows))


def document(title: str, parts: list[Tag], lead: str) -> str:
    """A page of these parts, with links to its sections, under a sentence that says what it is about."""
    sections = [dict(part.attributes) for part in parts if part.name == "section"]
    links = [tag("a", own["aria-label"], href=f"#{own['id']}") for own in sections]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", shown(title)),
        tag("style", CSS),
    )
    body = tag(
        "body",
        tag(
            "header",
            tag("h1", shown(title, 100)),
            tag("p", lead, class_="muted"),
            tag("nav", links),
        ),
        tag("main", parts),
        tag("footer", tag("p", "Made by dgpax. This file needs no network and runs no script.")),
    )  # fmt: skip
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"
