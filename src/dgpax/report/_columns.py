"""What there is to say about a column of a table before anything is fitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..data import Dataset
from ._html import Node, Tag, name, section, table, tag
from ._svg import small_histogram
from ._text import number, percent, shown

MOST_COLUMNS = 100
MOST_CATEGORIES = 5


class ColumnSummary(NamedTuple):
    """A column in words, and its numbers for a small histogram (None if it has none)."""

    name: str
    kind: str
    content: str
    num_missing: int
    values: np.ndarray | None = None


def describe_numbers(column: str, values: np.ndarray, kind: str = "number") -> ColumnSummary:
    """A column of floats; NaN is missing."""
    values = np.asarray(values, float)
    there = values[~np.isnan(values)]
    if not len(there):
        return ColumnSummary(column, kind, "no value at all", len(values))
    low, middle, high = np.min(there), np.median(there), np.max(there)
    content = f"{number(low)} … {number(high)}, median {number(middle)}"
    if low == high:
        content = f"always {number(low)}: no influence"
    return ColumnSummary(column, kind, content, len(values) - len(there), there)


def describe_categories(column: str, entries: Sequence[str | None]) -> ColumnSummary:
    """A column of text; None is missing."""
    there = [entry for entry in entries if entry is not None]
    counts = Counter(there).most_common()
    parts = [f"{shown(value, 30)} ({percent(count / len(there))})" for value, count in counts[:MOST_CATEGORIES]]
    more = [f"… {len(counts)} in all"] * (len(counts) > MOST_CATEGORIES)
    return ColumnSummary(column, "text", ", ".join(parts + more) or "no value at all", len(entries) - len(there))


def describe(data: Dataset) -> tuple[tuple[ColumnSummary, ...], tuple[ColumnSummary, ...]]:
    """The inputs and the outputs of a dataset."""
    sides = (data.x, data.input_names, "x"), (data.y, data.output_names, "y")
    inputs, outputs = (
        tuple(
            describe_numbers(names[i] if names else f"{letter}{i}", np.asarray(values)[:, i])
            for i in range(values.shape[1])
        )
        for values, names, letter in sides
    )
    return inputs, outputs


def data_section(
    train: Dataset | None, test: Dataset | None, columns: Sequence[ColumnSummary] | None, classes: Sequence[str]
) -> Tag:
    """Rows, columns, ranges and gaps: of the table as it was given if `columns` say so, else of the numbers in it."""
    parts = [data for data in (train, test) if data is not None]
    rows = [
        f"{data.num_rows:,} rows {verb}"
        for data, verb in ((train, "to train on"), (test, "held out"))
        if data is not None
    ]
    inputs, outputs = describe(parts[0])
    if classes:
        labels = np.asarray(parts[0].y)[:, 0]
        entries = [None if np.isnan(label) else classes[int(label)] for label in labels]
        outputs = (describe_categories(outputs[0].name, entries),)
    summaries = inputs if columns is None else tuple(columns)
    missing = sum(summary.num_missing for summary in (*summaries, *outputs))
    whose = "the rows to train on" if train is not None else "these rows"
    become = ""
    if columns is not None:
        whose, become = "the whole table", f" (as numbers: {parts[0].num_inputs})"
    return section(
        "data",
        "The data",
        tag("p", f"{', '.join(rows)}; inputs: {len(summaries)}{become}; missing values: {missing:,}. "
                 f"What follows is about {whose}."),
        table(
            ("column", "", "what is in it", "missing"),
            [_row(summary, "") for summary in summaries[:MOST_COLUMNS]]
            + [_row(summary, "target") for summary in outputs],
            wide=(1,),
            numbers=2,
        ),
        _more(len(summaries)),
    )  # fmt: skip


def _row(summary: ColumnSummary, role: str) -> list[Node]:
    picture = "" if summary.values is None else small_histogram(summary.values)
    first = tag("span", name(summary.name), f" ({role})" if role else None)
    return [first, picture, tag("span", summary.content, class_="content"), f"{summary.num_missing:,}"]


def _more(number_of_columns: int) -> Tag | None:
    left_out = number_of_columns - MOST_COLUMNS
    return tag("p", f"… and {left_out:,} more columns.", class_="muted") if left_out > 0 else None
