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
    """The table. Where rows are means, a column says of how many runs; where there are several sources, one names them.

    Published rows stand below those that were measured of the same thing.
    """
    rows: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for source, records in sources.items():
        for record in records:
            if record["kind"] == table.kind:
                rows.setdefault((source, *(str(record[name]) for name in table.names)), []).append(record)
    keys = (*table.names, *(column.key for column in table.columns))
    asides = {"runs": any(len(group) > 1 for group in rows.values()), "source": len(sources) > 1}
    shown = [name for name, wanted in asides.items() if wanted]
    lines = [
        [*table.names, *(column.heading for column in table.columns), *shown],
        ["---"] * len(table.names) + ["---:"] * (len(table.columns) + len(shown)),
    ]
    body = []
    for (source, *names), group in rows.items():
        aside = {"runs": str(len(group)), "source": source}
        averages = (average([record.get(c.key) for record in group], c.form) for c in table.columns)
        body.append([*names, *averages, *(aside[name] for name in shown)])
    if table.published:
        datasets = {group[0].get("dataset") for group in rows.values()}
        published = (row for row in table.published if row["dataset"] in datasets)
        body += [[*(row.get(key, MISSING) for key in keys), *(MISSING for _ in shown)] for row in published]
        body.sort(key=lambda line: [name for key, name in zip(table.names, line, strict=False) if key != "by"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines + body)


def average(values: Sequence[float | None], form: str) -> str:
    """Mean ± standard error, unless all are the same; says so if some repetitions have no value."""
    present = [value for value in values if value is not None]
    if not present:
        return MISSING
    mean = sum(present) / len(present)
    text = format(mean, form)
    if len(set(present)) > 1:
        variance = sum((value - mean) ** 2 for value in present) / (len(present) - 1)
        text += f" ± {math.sqrt(variance / len(present)):{form}}"
    return text if len(present) == len(values) else f"{text} ({len(present)} of {len(values)})"
