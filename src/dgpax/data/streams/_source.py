"""Where the rows of a stream come from: anything that gives rows by their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ...errors import InputError, InputTypeError, MissingDataError


@runtime_checkable
class RowSource(Protocol):
    """What a stream can read: `num_rows`, and `read` of row numbers (int64, ascending), which gives an array [B, C].

    `names` of the columns are welcome.
    """

    num_rows: int

    def read(self, rows: np.ndarray) -> np.ndarray: ...


class ArrayRows:
    """Rows of an array [N, C], in memory or mapped into it."""

    def __init__(self, values: np.ndarray, names: tuple[str, ...] = ()):
        if values.ndim != 2 or 0 in values.shape:
            raise InputError(f"A stream needs an array of shape (rows, columns); got shape {values.shape}.")
        if values.dtype.kind not in "fiub":
            raise InputTypeError(f"A stream needs an array of numbers; this one has {values.dtype}.")
        self.values, self.names, self.num_rows = values, names, len(values)

    def read(self, rows: np.ndarray) -> np.ndarray:
        return self.values[rows]


class Table(NamedTuple):
    """A source, and which of its columns are inputs and which are outputs."""

    source: RowSource
    inputs: list[int]
    outputs: list[int]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    dtype: np.dtype

    @classmethod
    def of(cls, source: RowSource, target: Any, inputs: Any) -> Table:
        """Columns are found by names or numbers; all others than the target's are inputs unless these are given."""
        if source.num_rows < 1:
            raise InputError("Found a stream with 0 sample(s) while a minimum of 1 is required.")
        first = _as_table(source.read(np.arange(1, dtype=np.int64)))
        names = tuple(getattr(source, "names", ()))
        outputs = _places(target, names, first.shape[1], "target")
        others = [place for place in range(first.shape[1]) if place not in outputs]
        own = others if inputs is None else _places(inputs, names, first.shape[1], "inputs")
        both = sorted(set(own) & set(outputs))
        if both or not own:
            what = f"{_called(both[0], names)} is both" if both else "there are no inputs"
            raise InputError(f"The columns of a stream are inputs or targets: {what}. Name others.")
        pick = (lambda places: tuple(names[place] for place in places)) if names else lambda places: ()
        wide = first.dtype != np.float32
        return cls(source, own, outputs, pick(own), pick(outputs), np.dtype(np.float64 if wide else np.float32))

    def read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and outputs of these rows, in the order in which they are asked for; all are finite."""
        order = np.argsort(rows, kind="stable")
        values = _as_table(self.source.read(rows[order]))
        if len(values) != len(rows):
            raise InputError(f"The source gave {len(values)} rows where {len(rows)} were asked for.")
        x, y = (values[:, places].astype(self.dtype, copy=False) for places in (self.inputs, self.outputs))
        for part, places in ((x, self.inputs), (y, self.outputs)):
            if not np.isfinite(part).all():
                self._refuse(part, places, rows[order])
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return x[back], y[back]

    def _refuse(self, values: np.ndarray, places: list[int], rows: np.ndarray) -> None:
        row, column = np.argwhere(~np.isfinite(values))[0]
        name = _called(places[column], tuple(getattr(self.source, "names", ())))
        raise InputError(
            f"{name} is {values[row, column]} in row {rows[row]:,}. A stream needs numbers: fill gaps in, or leave "
            "these rows out."
        )


def mapped(path: Path) -> np.ndarray:
    """A .npy file as an array whose rows are read when they are asked for."""
    if path.suffix != ".npy":
        raise InputError(
            f"A stream reads .parquet and .npy files, folders of .parquet files, data frames, arrays, and objects with "
            f"num_rows and read(rows); got {path}."
        )
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise MissingDataError(f"There is no file {path}.") from error
    except ValueError as error:
        raise InputError(f"{path} can't be read as an array of numbers: {error}.") from error


def _as_table(values: Any) -> np.ndarray:
    values = np.asarray(values)
    if values.ndim != 2:
        raise InputError(f"read(rows) must give an array of shape (rows, columns); got shape {values.shape}.")
    return values


def _places(columns: Any, names: tuple[str, ...], number: int, role: str) -> list[int]:
    """Which columns are meant."""
    asked: Sequence[Any] = [columns] if isinstance(columns, str | int | np.integer) else list(columns)
    places = []
    for column in asked:
        if isinstance(column, str):
            if column not in names:
                known = ", ".join(map(repr, names)) or "no names, so give its number"
                raise InputError(f"stream({role}={column!r}): there is no such column. There are: {known}.")
            places.append(names.index(column))
        elif -number <= column < number:
            places.append(int(column) % number)
        else:
            raise InputError(f"stream({role}={column}): there are {number} columns, from 0 to {number - 1}.")
    if not places or len(set(places)) < len(places):
        raise InputError(f"stream({role}=...) must name at least one column, and none twice; got {columns!r}.")
    return places


def _called(place: int, names: tuple[str, ...]) -> str:
    return f"The column {names[place]!r}" if names else f"Column {place}"
