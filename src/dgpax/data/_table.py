"""The columns of a table, each as numbers, days or text, from whatever the user has."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from ..errors import InputError, InputTypeError
from ._arrays import as_numpy, is_sparse
from ._frames import column_names, columns_of, is_frame, is_number, series_to_numpy
from ._validation import read_inputs

DAY = np.timedelta64(1, "D")
LONGEST_NAME = 60


class Column(NamedTuple):
    """A column and what it is called in messages: floats, with NaN where they are missing, or text, with None."""

    label: str
    values: np.ndarray
    is_date: bool = False

    @property
    def is_number(self) -> bool:
        return self.values.dtype.kind == "f"


def typed_columns(table: Any) -> tuple[list[Column], tuple[str, ...]]:
    """The columns of a table of inputs, and their names, () where it has none."""
    if is_frame(table):
        return _of_frame(table)
    if is_mapping(table):
        return [_of_array(_label(name, i), table[name]) for i, name in enumerate(table)], tuple(table)
    array = _untyped(table)
    if array.dtype.kind == "O" and array.ndim == 2 and 0 not in array.shape:
        return [_of_objects(_label("", i), column) for i, column in enumerate(array.T)], ()
    values = np.asarray(read_inputs(array).values)
    return [Column(_label("", i), column) for i, column in enumerate(values.T)], ()


def is_mapping(table: Any) -> TypeGuard[Mapping[str, np.ndarray]]:
    """Whether these are columns by name. One of SciPy's sparse formats is a dict, and isn't meant."""
    return isinstance(table, Mapping) and not is_sparse(table)


def _of_frame(frame: Any) -> tuple[list[Column], tuple[str, ...]]:
    names = column_names(frame, "x")
    if len(frame.shape) != 2 or 0 in frame.shape:
        read_inputs(np.zeros(frame.shape))
    columns = columns_of(frame, "x")
    return [_of_series(_label(name, i), columns[i]) for i, name in enumerate(names or [""] * len(columns))], names


def _of_array(label: str, values: np.ndarray) -> Column:
    return Column(label, values) if values.dtype.kind == "f" else _of_objects(label, values)


def _untyped(table: Any) -> np.ndarray:
    """An array whose entries have kept their types: lists of numbers and text would otherwise become text.

    Numbers that NumPy has already turned into text, beside text in another column, become numbers again.
    """
    array = as_numpy(table, "x")
    if array.dtype.kind in "UST" and not isinstance(table, np.ndarray):
        return np.array(table, dtype=object)
    if array.dtype.kind in "UST" and array.ndim == 2:
        return np.array([_numbers_or_text(column) for column in array.T], dtype=object).T.reshape(array.shape)
    return array


def _numbers_or_text(column: np.ndarray) -> list[Any]:
    try:
        return [float(entry) for entry in column]
    except ValueError:
        return [str(entry) for entry in column]


def _of_series(label: str, series: Any) -> Column:
    dtype = str(series.dtype).lower()
    if dtype.startswith(("date", "duration", "timedelta")):
        unit = "timedelta64[us]" if dtype.startswith(("duration", "timedelta")) else "datetime64[us]"
        return Column(label, days(_without_zone(series).to_numpy().astype(unit)), is_date=True)
    if is_number(series) and not dtype.startswith("bool"):
        return Column(label, series_to_numpy(series, np.dtype(np.float32 if dtype == "float32" else np.float64)))
    entries = series.to_list()
    if dtype.startswith("categor"):
        entries = [entry if _is_missing(entry) else str(entry) for entry in entries]
    return _of_objects(label, _objects(entries))


def _without_zone(series: Any) -> Any:
    """A series of pandas with a time zone in UTC; polars keeps UTC anyway."""
    return series.dt.tz_convert(None) if getattr(series.dtype, "tz", None) else series


def _objects(entries: list[Any]) -> np.ndarray:
    """An array of Python objects, never of what NumPy makes of them."""
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return array


def _of_objects(label: str, entries: np.ndarray) -> Column:
    """What Python objects are: all numbers, all dates, or else text, truth values and categories."""
    missing = np.array([_is_missing(entry) for entry in entries])
    present = [entry for entry, absent in zip(entries, missing, strict=True) if not absent]
    kinds = {_kind(label, entry) for entry in present}
    if kinds == {"date"}:
        times = np.array([None if absent else entry for entry, absent in zip(entries, missing, strict=True)])
        return Column(label, days(times.astype("datetime64[us]")), is_date=True)
    if kinds <= {"number"}:
        return Column(label, np.array([np.nan if m else float(e) for e, m in zip(entries, missing, strict=True)]))
    if "date" in kinds:
        raise InputTypeError(f"{label} mixes dates with other values. Make it one or the other.")
    texts = [None if absent else str(entry) for entry, absent in zip(entries, missing, strict=True)]
    return Column(label, _objects(texts))


def _kind(label: str, entry: Any) -> str:
    if isinstance(entry, str | bool | np.bool_):
        return "text"
    if isinstance(entry, date | np.datetime64):
        return "date"
    if isinstance(entry, complex | np.complexfloating):
        raise InputError(f"Complex data not supported: {label} has {entry!r}. Make its parts two columns.")
    try:
        float(entry)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"{label} has an entry of type {type(entry).__name__}; argument must be a string or a real number."
        ) from error
    return "number"


def _is_missing(entry: Any) -> bool:
    """None, NaN, empty text, and what pandas has for them."""
    if isinstance(entry, str):
        return not entry
    return (
        entry is None or type(entry).__name__ in ("NAType", "NaTType") or (isinstance(entry, float) and entry != entry)
    )


def days(times: np.ndarray) -> np.ndarray:
    """Days, since 1970 (UTC) for dates."""
    elapsed = times - np.datetime64(0, "us") if times.dtype.kind == "M" else times
    return np.where(np.isnat(times), np.nan, elapsed / DAY)


def _label(name: str, index: int) -> str:
    return f"The column {name[:LONGEST_NAME]!r}" if name else f"Column {index}"
