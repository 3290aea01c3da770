"""Records as Markdown tables: one row per thing that was measured, averages over its repetitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

MISSING = "–"


class Column(NamedTuple):
    """A number of a record: its key, the heading, and how it is printed."""

    key: str
    heading: str
    form: str


class Published(NamedTuple):
    """A number from a paper, with the standard error that it prints."""

    value: float
    error: float


class Table(NamedTuple):
    """A table of a benchmark: `kind` says which records, `names` which of their entries tell the rows apart.

    `published` are rows from elsewhere; they are shown for the datasets that were measured. Values in them are
    `Published`; missing ones are left blank.
    """

    title: str
    kind: str
    names: tuple[str, ...]
    columns: tuple[Column, ...]
    published: tuple[dict[str, Any], ...] = ()


def markdown(table: Table, records: Sequence[dict[str, Any]]) -> str | None:
    """The table, or None if there is nothing to show."""
    chosen = [record for record in records if record["kind"] == table.kind]
    if not chosen:
        return None
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for record in chosen:
        groups.setdefault(tuple(str(record[name]) for name in table.names), []).append(record)
    headings = [*table.names, *(column.heading for column in table.columns)]
    lines = [headings, ["---"] * len(table.names) + ["---:"] * len(table.columns)]
    for names, group in groups.items():
        lines.append([*names, *(_average([record[c.key] for record in group], c.form) for c in table.columns)])
    measured = {record["dataset"] for record in chosen}
    for row in table.published:
        if row["dataset"] in measured:
            lines.append(
                [*(row[name] for name in table.names), *(_print(row.get(c.key), c.form) for c in table.columns)]
            )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _average(values: Sequence[float | None], form: str) -> str:
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


def _print(number: Published | None, form: str) -> str:
    return MISSING if number is None else f"{number.value:{form}} ± {number.error:{form}}"
