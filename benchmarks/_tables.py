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


def markdown(table: Table, records: Sequence[dict[str, Any]]) -> str | None:
    """The table, or None if there is nothing to show."""
    chosen = [record for record in records if record["kind"] == table.kind]
    if not chosen:
        return None
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for record in chosen:
        groups.setdefault(tuple(str(record[name]) for name in table.names), []).append(record)
    measured = {record.get("dataset") for record in chosen}
    keys = (*table.names, *(column.key for column in table.columns))
    lines = [
        [*table.names, *(column.heading for column in table.columns)],
        ["---"] * len(table.names) + ["---:"] * len(table.columns),
        *(
            [*names, *(average([r.get(c.key) for r in group], c.form) for c in table.columns)]
            for names, group in groups.items()
        ),
        *([row.get(key, MISSING) for key in keys] for row in table.published if row["dataset"] in measured),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


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
