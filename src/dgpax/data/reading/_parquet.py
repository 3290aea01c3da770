"""Parquet with whatever can read it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError, MissingDataError
from ._table import TableColumn, objects
from ._written import CATEGORY, DATE, EMPTY, NUMBER, TIME, Written


def parquet_columns(path: Path) -> dict[str, list[Any]]:
    """The columns of a Parquet file, by polars or pyarrow, whichever there is."""
    columns = _by_polars(path) or _by_pyarrow(path)
    if columns is None:
        raise MissingDataError(
            f"Reading {path} needs polars or pyarrow: pip install polars. Or save it as CSV, which needs nothing."
        )
    if not columns or not next(iter(columns.values())):
        raise InputError(f"{path} has no {'rows' if columns else 'columns'}.")
    return columns


def typed_column(name: str, entries: Sequence[Any]) -> TableColumn:
    """A column whose values have types, and are what they are."""
    there = [entry for entry in entries if entry is not None]
    texts = ["" if entry is None else str(entry) for entry in entries]
    if not there:
        kind, values = EMPTY, np.full(len(entries), np.nan)
    elif all(isinstance(entry, int | float | Decimal) and not isinstance(entry, bool) for entry in there):
        kind, values = NUMBER, np.array([np.nan if entry is None else float(entry) for entry in entries])
    elif all(isinstance(entry, time | timedelta) for entry in there):
        kind, values = TIME, np.array([np.nan if entry is None else _hours(entry) for entry in entries])
    elif all(isinstance(entry, date) for entry in there):
        kind, values = DATE, objects([None if entry is None else _moment(entry) for entry in entries])
    else:
        kind, values = CATEGORY, objects([None if entry is None else str(entry) for entry in entries])
        odd = next((entry for entry in there if not isinstance(entry, str | bool)), None)
        if odd is not None:
            problem = (
                f"The column {name!r} holds values of type {type(odd).__name__}, which can't be used. Leave it out."
            )
            return TableColumn(name, Written(name, kind), values, texts, problem)
    return TableColumn(name, Written(name, kind), values, texts)


def is_text(entries: Sequence[Any]) -> bool:
    """Whether a column holds text, which may mean numbers or dates."""
    there = [entry for entry in entries if entry is not None]
    return bool(there) and all(isinstance(entry, str) for entry in there)


def _hours(entry: time | timedelta) -> float:
    if isinstance(entry, timedelta):
        return entry.total_seconds() / 3600
    return entry.hour + entry.minute / 60 + (entry.second + entry.microsecond / 1e6) / 3600


def _moment(entry: date) -> datetime:
    if not isinstance(entry, datetime):
        return datetime(entry.year, entry.month, entry.day)
    return entry.astimezone(UTC).replace(tzinfo=None) if entry.tzinfo else entry


def _by_polars(path: Path) -> dict[str, list[Any]] | None:
    try:
        import polars
    except ImportError:
        return None
    return polars.read_parquet(path).to_dict(as_series=False)


def _by_pyarrow(path: Path) -> dict[str, list[Any]] | None:
    try:
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    return parquet.read_table(path).to_pydict()
