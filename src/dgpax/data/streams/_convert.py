"""A Parquet table as one array of numbers on disk, made once and mapped into memory from then on."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError, ModelFileError
from .._cycles import cycles_of, on_circle, representatives
from .._encoding import CategoryColumn, Encoding, NumberColumn, category_column, refuse_infinite
from .._table import Column
from ._median import exact_median
from ._parquet import ParquetFiles, Text
from ._source import ArrayRows

LOG = logging.getLogger("dgpax")
VERSION = 2
MEDIAN_ROWS = 1_000_000
COPIED_ROWS = 20_000_000
"""Of one column, that are put in order in memory."""


class Converted(NamedTuple):
    """Encoded inputs, then targets; and how the inputs were encoded."""

    source: ArrayRows
    encoding: Encoding


def converted(path: Path, targets: Sequence[str], inputs: Sequence[str] | None, cache: Path) -> Converted:
    """The table as numbers, from the cache if it was converted before and its files haven't changed since."""
    files = ParquetFiles.of(path)
    own = [name for name in files.names if name not in targets] if inputs is None else list(inputs)
    unknown = [name for name in (*targets, *own) if name not in files.names]
    if unknown:
        known = ", ".join(map(repr, files.names))
        raise InputError(f"{path} has no column {', '.join(map(repr, unknown))}. There are: {known}.")
    words = json.dumps([VERSION, files.identity, list(targets), own])
    folder = cache / hashlib.sha256(words.encode()).hexdigest()[:20]
    if not folder.exists():
        _convert(files, list(targets), own, folder)
    return _opened(folder, targets)


def _convert(files: ParquetFiles, targets: list[str], inputs: list[str], folder: Path) -> None:
    """Into a folder that is there whole or not at all."""
    encoding, dtype = _learn(files, inputs, targets)
    width = len(encoding.output_names) + len(targets)
    num_bytes = files.num_rows * width * dtype.itemsize
    partial = folder.with_name(f"{folder.name}.{os.getpid()}")
    try:
        partial.mkdir(parents=True)
        free = shutil.disk_usage(partial).free
        if num_bytes > free:
            raise InputError(f"{num_bytes:,} bytes are needed in {folder.parent}, and {free:,} are free there.")
        LOG.info("Converting %s rows to %s bytes in %s.", f"{files.num_rows:,}", f"{num_bytes:,}", folder)
        rows = partial / "rows.npy"
        _write(rows, files, encoding, targets, (files.num_rows, width), dtype)
        encoding = _filled(rows, encoding)
        about = {"columns": [_described(c) for c in encoding.columns], "names": encoding.input_names}
        about["sha256"] = _checksum(rows)
        (partial / "about.json").write_text(json.dumps(about), "utf-8")
        partial.rename(folder)
    except OSError as error:
        raise InputError(f"The table can't be written to {folder.parent}: {error}. Choose another cache.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _learn(files: ParquetFiles, inputs: list[str], targets: list[str]) -> tuple[Encoding, np.dtype]:
    """How the inputs are to be encoded; medians are not known yet."""
    names, seen = [*inputs, *targets], None
    for columns in files.chunks(names):
        seen = [_merged(old, new) for old, new in zip(seen or [None] * len(names), columns, strict=True)]
    if seen is None:
        raise InputError(f"{files.paths[0]} has no rows.")
    for name, column in zip(targets, seen[len(inputs) :], strict=True):
        if not isinstance(column, _Numbers) or column.has_gaps:
            what = "has gaps" if isinstance(column, _Numbers) else "is text"
            raise InputError(f"The target {name!r} {what}, and a stream's targets are numbers in every row.")
    columns = tuple(c.column(name, files.num_rows) for name, c in zip(inputs, seen, strict=False))
    narrow = all(isinstance(column, _Numbers) and column.is_float32 for column in seen)
    return Encoding(columns, tuple(inputs)), np.dtype(np.float32 if narrow else np.float64)


class _Numbers(NamedTuple):
    """What is known of a column of numbers or dates."""

    label: str
    has_gaps: bool
    all_gaps: bool
    is_float32: bool
    days: np.ndarray | None
    """Representatives of a column of dates."""

    def column(self, name: str, num_rows: int) -> NumberColumn:
        if self.all_gaps:
            raise InputError(f"{self.label} has no value at all. Leave it out.")
        cycles = () if self.days is None else cycles_of(self.days)
        return NumberColumn(name, float("nan"), self.has_gaps, self.days is not None, cycles)


class _Entries(NamedTuple):
    """What is known of a column of text."""

    label: str
    entries: frozenset[str]

    def column(self, name: str, num_rows: int) -> CategoryColumn:
        return category_column(name, self.label, self.entries, num_rows)


def _merged(old: _Numbers | _Entries | None, chunk: Column | Text) -> _Numbers | _Entries:
    """What is known with one more row group."""
    if isinstance(chunk, Text):
        new = _Entries(chunk.label, frozenset(chunk.entries[code] for code in np.unique(chunk.codes)))
    else:
        refuse_infinite(chunk)
        gaps = np.isnan(chunk.values)
        days = representatives(chunk.values[~gaps]) if chunk.is_date else None
        new = _Numbers(chunk.label, bool(gaps.any()), bool(gaps.all()), chunk.values.dtype == np.float32, days)
    if old is None:
        return new
    if isinstance(old, _Entries) and isinstance(new, _Entries):
        return _Entries(old.label, old.entries | new.entries)
    if isinstance(old, _Numbers) and isinstance(new, _Numbers) and (old.days is None) == (new.days is None):
        both = [days for days in (old.days, new.days) if days is not None]
        days = representatives(np.concatenate(both)) if both else None
        return _Numbers(
            old.label, old.has_gaps or new.has_gaps, old.all_gaps and new.all_gaps, old.is_float32 and new.is_float32,
            days,
        )  # fmt: skip
    raise InputError(f"{old.label} has another type in one of the files than in the others.")


def _write(path: Path, files: ParquetFiles, encoding: Encoding, targets, shape, dtype: np.dtype) -> None:
    """By plain writes, which say when the disk is full; a mapped file would end the process."""
    with path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(file, header)
        for columns in files.chunks([*encoding.input_names, *targets]):
            own, others = columns[: len(encoding.columns)], columns[len(encoding.columns) :]
            parts = [_encoded(how, column) for how, column in zip(encoding.columns, own, strict=True)]
            parts += [column.values[:, None] for column in others if isinstance(column, Column)]
            file.write(np.ascontiguousarray(np.concatenate(parts, axis=1), dtype).tobytes())


def _encoded(how: NumberColumn | CategoryColumn, column: Column | Text) -> np.ndarray:
    if isinstance(column, Column):
        return how.apply(column)
    assert isinstance(how, CategoryColumn)  # noqa: S101 - it was learnt from this column
    place = {category: number for number, category in enumerate(how.categories)}
    numbers = np.array([place.get(entry, -1) for entry in column.entries])
    return np.equal.outer(numbers[column.codes], np.arange(len(how.categories))).astype(float)


def _filled(path: Path, encoding: Encoding) -> Encoding:
    """With medians in place of gaps, in the file and in what is known of the columns."""
    rows = np.load(path, mmap_mode="r+", allow_pickle=False)
    columns = list(encoding.columns)
    for number, (column, places) in enumerate(zip(encoding.columns, encoding.places, strict=True)):
        if isinstance(column, NumberColumn):
            median = _median(rows, places[0])
            columns[number] = replace(column, median=median)
            circles = [on_circle(np.array([median]), cycle)[0] for cycle in column.cycles]
            values = np.concatenate([[median], *circles])
            own = [places[0], *places[len(places) - 2 * len(circles) :]]
            for place, value in zip(own, values, strict=True) if column.has_gaps else ():
                for piece in _pieces(rows, place):
                    piece[np.isnan(piece)] = value
    rows.flush()
    return replace(encoding, columns=tuple(columns))


def _median(rows: np.ndarray, place: int) -> float:
    if len(rows) <= COPIED_ROWS:
        values = np.array(rows[:, place], float)
        return float(np.median(values[~np.isnan(values)]))
    return exact_median(lambda: _pieces(rows, place))


def _pieces(rows: np.ndarray, place: int) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), MEDIAN_ROWS):
        yield rows[start : start + MEDIAN_ROWS, place]


def _described(column: NumberColumn | CategoryColumn) -> dict:
    return {"categories" if isinstance(column, CategoryColumn) else "number": True} | vars(column)


def _opened(folder: Path, targets: Sequence[str]) -> Converted:
    """From a folder whose file is what was written."""
    about = json.loads((folder / "about.json").read_text("utf-8"))
    if _checksum(folder / "rows.npy") != about["sha256"]:
        raise ModelFileError(f"{folder} isn't what was written there. Delete it, and it is converted anew.")
    columns = tuple(_column(dict(entry)) for entry in about["columns"])
    encoding = Encoding(columns, tuple(about["names"]))
    rows = np.load(folder / "rows.npy", mmap_mode="r", allow_pickle=False)
    return Converted(ArrayRows(rows, (*encoding.output_names, *targets)), encoding)


def _column(entry: dict[str, Any]) -> NumberColumn | CategoryColumn:
    if entry.pop("number", False):
        cycles = tuple(entry.pop("cycles"))
        return NumberColumn(**entry, cycles=cycles)
    return CategoryColumn(entry["name"], tuple(entry["categories"]))


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
