"""What was read: a table of columns, with notes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from ...errors import InputError
from ._words import quoted
from ._written import CATEGORY, DATE, EMPTY, NUMBER, TIME, Written

CONSTANT, IDENTIFIER = "constant", "identifier"
FEWEST_NAMES = 10
"""Rows above which words that are all different name the rows."""
_NAMES_ROWS = re.compile(r"(.*[ _-])?(id|ids|nr\.?|no\.?|index|idx|uuid|guid|key|row|#)|.*Id", re.IGNORECASE)


@dataclass(frozen=True)
class TableColumn:
    """A column of a table as it was understood.

    `values` are floats (numbers, and times of day in hours; NaN where missing), datetimes, or text (None where
    missing); `cells` is the text they were read from. A column that can't be understood has a `problem`, which is
    raised as soon as its values are asked for.
    """

    name: str
    written: Written
    values: np.ndarray
    cells: Sequence[str]
    problem: str = ""

    @property
    def missing(self) -> int:
        """How many values are missing."""
        return int(np.sum(_is_missing(self.values)))

    @property
    def kind(self) -> str:
        """What is in it: number, category, date, time, constant, empty or identifier."""
        kind, rows = self.written.kind, len(self.values)
        if kind == EMPTY or self.problem:
            return kind
        distinct = len(set(self.values[~_is_missing(self.values)].tolist()))
        if distinct == 1 and not self.missing and rows > 1:
            return CONSTANT
        unique = distinct == rows > 2
        whole = kind == NUMBER and unique and bool(np.all(self.values == np.round(self.values)))
        counts = whole and bool(np.all(np.diff(self.values) == 1.0)) and self.name == "column 1"
        named = (unique and bool(_NAMES_ROWS.fullmatch(self.name)) and (kind == CATEGORY or whole)) or counts
        return IDENTIFIER if named or (kind == CATEGORY and unique and rows > FEWEST_NAMES) else kind

    def first(self, count: int = 5) -> list[Any]:
        """The first values as they were understood: numbers, text, dates and times as ISO 8601, None where missing."""
        return [_shown(value, self.written.kind) for value in self.values[:count].tolist()]


@dataclass(frozen=True)
class Table:
    """A table in a file: its columns by name, what separates them, the encoding, and notes on what was decided.

    `separator` and `encoding` are None where a file has none, as Parquet; `lines` are those of the file that the rows
    begin in.
    """

    columns: Mapping[str, TableColumn]
    lines: Sequence[int]
    notes: tuple[str, ...] = ()
    separator: str | None = None
    encoding: str | None = None

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self.lines)

    @property
    def written(self) -> tuple[Written, ...]:
        """How the cells of every column were written, for `read_table(..., like=...)`."""
        return tuple(column.written for column in self.columns.values())

    def require(self, names: Sequence[str]) -> None:
        """Raise unless there are columns of these names."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise InputError(f"The table has no column {quoted(missing)}. It has: {quoted(list(self.columns))}.")

    def values(self, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Columns by name (all of them, unless named), or an error that lists what there is or says what is wrong."""
        chosen = list(self.columns) if names is None else list(names)
        self.require(chosen)
        problems = [self.columns[name].problem for name in chosen if self.columns[name].problem]
        if problems:
            raise InputError("\n".join(problems))
        return {name: self.columns[name].values for name in chosen}

    def rows(self, keep: np.ndarray) -> Table:
        """These rows, by a truth value for each."""
        if np.all(keep):
            return self
        chosen = np.flatnonzero(keep).tolist()
        columns = {
            name: replace(column, values=column.values[chosen], cells=[column.cells[i] for i in chosen])
            for name, column in self.columns.items()
        }
        return replace(self, columns=columns, lines=[self.lines[i] for i in chosen])


def objects(entries: Sequence[Any]) -> np.ndarray:
    """An array of Python objects, never of what NumPy makes of them."""
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return array


def _is_missing(values: np.ndarray) -> np.ndarray:
    return np.isnan(values) if values.dtype.kind == "f" else np.array([value is None for value in values], bool)


def _shown(value: Any, kind: str) -> Any:
    if value is None or value != value:
        return None
    if isinstance(value, str):
        return value
    if kind == TIME:
        return _clock(value)
    if kind == DATE and isinstance(value, datetime):
        return value.date().isoformat() if value == datetime(value.year, value.month, value.day) else value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return value


def _clock(hours: float) -> str:
    seconds = round(3600 * hours, 6)
    whole, rest = divmod(seconds, 60)
    text = f"{int(whole) // 60:02d}:{int(whole) % 60:02d}"
    return f"{text}:{rest:06.3f}".rstrip("0").rstrip(".") if rest else text
