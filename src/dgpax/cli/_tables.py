"""Tables in files: CSV with Python's own reader, Parquet with whatever can read it."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import InputError, MissingDataError

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "nat"})
SEPARATED = (".csv", ".tsv", ".txt")
SUFFIXES = (*SEPARATED, *(f"{suffix}.gz" for suffix in SEPARATED), ".parquet", ".pq")


class Table(NamedTuple):
    """Columns by name, each an array of floats (NaN: missing) or of text and dates (None: missing)."""

    columns: dict[str, np.ndarray]

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.columns.values())))

    def select(self, names: Sequence[str]) -> Table:
        """These columns, or an error that lists what there is."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise InputError(f"The table has no column {_quoted(missing)}. It has: {_quoted(list(self.columns))}.")
        return Table({name: self.columns[name] for name in names})

    def rows(self, keep: np.ndarray) -> Table:
        """These rows."""
        return Table({name: values[keep] for name, values in self.columns.items()})


def is_table(source: str) -> bool:
    """Is it a file's name, rather than that of a dataset?"""
    return source.lower().endswith(SUFFIXES) or Path(source).is_file()


def read_table(path: str | Path) -> Table:
    """The table in a file; columns of numbers, dates and text are told apart by what they hold."""
    path = Path(path)
    if not path.is_file():
        raise MissingDataError(f"There is no file {path}.")
    return _read_parquet(path) if path.suffix.lower() in (".parquet", ".pq") else _read_separated(path)


def csv_text(columns: dict[str, list]) -> str:
    """A CSV of columns of equal length; floats are written so that they are read back exactly."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _read_separated(path: Path) -> Table:
    content = gzip.decompress(path.read_bytes()) if path.suffix.lower() == ".gz" else path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text), skipinitialspace=True)
    try:
        head, *rows = [row for row in reader if any(cell.strip() for cell in row)]
    except (ValueError, csv.Error) as error:
        raise InputError(f"{path} can't be read as a table of separated values: {error}.") from error
    names = [cell.strip() or f"column {index + 1}" for index, cell in enumerate(head)]
    if len(set(names)) < len(names):
        raise InputError(f"{path} has several columns of the same name. Rename them.")
    uneven = next((number for number, row in enumerate(rows, 2) if len(row) != len(names)), None)
    if uneven is not None or not rows:
        what = f"row {uneven} has {len(rows[uneven - 2])} cells" if uneven else "there are no rows below it"
        raise InputError(f"{path}: the first row names {len(names)} columns, but {what}. Is the separator right?")
    return Table({name: _column(cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)})


def _separator(text: str) -> str:
    """The sign that is most frequent in the first line, of those that separate."""
    first = text.lstrip().partition("\n")[0]
    return max(",;\t|", key=first.count)


def _column(cells: Sequence[str]) -> np.ndarray:
    entries = [None if cell.strip().lower() in MISSING else cell.strip() for cell in cells]
    for kind in (_numbers, _dates):
        try:
            return kind(entries)
        except ValueError:
            continue
    return _objects(entries)


def _numbers(entries: list[str | None]) -> np.ndarray:
    return np.array([np.nan if entry is None else float(entry) for entry in entries])


def _dates(entries: list[str | None]) -> np.ndarray:
    """ISO dates and times; those with a zone in UTC."""
    times = [None if entry is None else datetime.fromisoformat(entry) for entry in entries]
    return _objects([t if t is None or t.tzinfo is None else t.astimezone(UTC).replace(tzinfo=None) for t in times])


def _objects(entries: list) -> np.ndarray:
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return array


def _read_parquet(path: Path) -> Table:
    """With polars, pandas or pyarrow, whichever there is."""
    columns = _polars(path) or _pyarrow(path)
    if columns is None:
        raise MissingDataError(
            f"Reading {path} needs polars or pyarrow: pip install polars. Or save it as CSV, which needs nothing."
        )
    if not columns:
        raise InputError(f"{path} has no columns.")
    return Table({name: _typed(entries) for name, entries in columns.items()})


def _polars(path: Path) -> dict[str, list] | None:
    try:
        import polars
    except ImportError:
        return None
    return polars.read_parquet(path).to_dict(as_series=False)


def _pyarrow(path: Path) -> dict[str, list] | None:
    try:
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    return parquet.read_table(path).to_pydict()


def _typed(entries: list) -> np.ndarray:
    if all(entry is None or type(entry) in (int, float) for entry in entries):
        return np.array([np.nan if entry is None else float(entry) for entry in entries])
    return _objects([entry if entry is None or isinstance(entry, date) else str(entry) for entry in entries])


def _quoted(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(repr(name[:60]) for name in names[:most])
    return f"{shown}, … ({len(names)} in all)" if len(names) > most else shown
