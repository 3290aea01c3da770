"""Records as Markdown tables: one row per thing that was measured, averages over its repetitions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

MISSING = "–"


class Column(NamedTuple):
    """A number of a record: its key, the heading, and how it is printed."""

    key: str
    heading: str
    form: str


class Table(NamedTuple):
    """A table of a benchmark: `kind` says which records, `names` which of their entries tell the rows apart.

    `published` are rows from elsewhere, numbers as printed there, shown for the datasets that were measured.
    """

    title: str
    kind: str
    names: tuple[str, ...]
    columns: tuple[Column, ...]
    published: tuple[Mapping[str, str], ...] = ()


def markdown(table: Table, sources: Mapping[str, Sequence[dict[str, Any]]]) -> str:
    """The table. Where there are several sources, a column names that of a row.

    Published rows stand below those that were measured of the same thing.
    """
    rows: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for source, records in sources.items():
        for record in records:
            if record["kind"] == table.kind:
                rows.setdefault((source, *(str(record[name]) for name in table.names)), []).append(record)
    keys = (*table.names, *(column.key for column in table.columns))
    lines = [
        [*table.names, *(column.heading for column in table.columns), "source"],
        ["---"] * len(table.names) + ["---:"] * (len(table.columns) + 1),
    ]
    body = [
        [*names, *(average([r.get(c.key) for r in group], c.form) for c in table.columns), source]
        for (source, *names), group in rows.items()
    ]
    if table.published:
        datasets = {group[0].get("dataset") for group in rows.values()}
        published = (row for row in table.published if row["dataset"] in datasets)
        body += [[*(row.get(key, MISSING) for key in keys), MISSING] for row in published]
        body.sort(key=lambda line: [name for key, name in zip(table.names, line, strict=False) if key != "by"])
    shown = None if len(sources) > 1 else -1
    return "\n".join(f"| {' | '.join(line[:shown])} |" for line in lines + body)


def average(values: Sequence[float | None], form: str) -> str:
    """Mean ± standard error; says so if some repetitions have no value."""
    present = [value for value in values if value is not None]
    if not present:
        return MISSING
    mean = sum(present) / len(present)
    text = format(mean, form)
    if len(present) > 1:
        variance = sum((value - mean) ** 2 for value in present) / (len(present) - 1)
        text += f" ± {math.sqrt(variance / len(present)):{form}}"
    return text if len(present) == len(values) else f"{text} ({len(present)} of {len(values)})"
