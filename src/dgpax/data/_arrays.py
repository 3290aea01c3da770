"""The one way from what the user has to a NumPy array: what is masked or missing is never a number."""

from __future__ import annotations

import sys
from datetime import date, timedelta
from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError
from ._frames import columns_of, is_frame, is_number

WITH_UNITS = {"Quantity", "PlainQuantity", "unyt_array"}


def is_sparse(value: Any) -> bool:
    """Is it in one of SciPy's sparse formats? None is, as long as nobody has imported them."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(value)


def as_numpy(value: Any, role: str) -> np.ndarray:
    """What NumPy makes of it; what is masked becomes NaN, NaT among times, None among text and objects."""
    refuse_units(value, role)
    if type(value).__name__ == "Dataset":
        raise InputTypeError(f"{role} is a Dataset; an array of its rows is wanted: data.{role}.")
    if is_sparse(value):
        raise InputTypeError(
            f"{role} is a sparse matrix, which can't be used. If it fits in memory, make it dense: {role}.toarray()."
        )
    try:
        if isinstance(value, list | tuple) and any(isinstance(item, np.ma.MaskedArray) for item in value):
            value = np.ma.stack([np.ma.asanyarray(item) for item in value])
        return _unmasked(value) if isinstance(value, np.ma.MaskedArray) else np.asarray(value)
    except ValueError as error:
        raise InputError(f"{role} can't be read as an array: {error}. All rows must have the same length.") from error


def refuse_units(value: Any, role: str) -> None:
    """NumPy would drop them without a word."""
    named = WITH_UNITS & {base.__name__ for base in type(value).__mro__}
    if named:
        raise InputTypeError(
            f"{role} has units ({type(value).__module__.partition('.')[0]}'s {type(value).__name__}), which would be "
            f"lost. Convert it to the unit that you want and pass its numbers: {role}.magnitude, or {role}.value."
        )


def numbers_of(value: Any, role: str, advice: str) -> Any:
    """The same, with numbers where it holds text and Python objects that stand for some; what is missing is NaN."""
    if is_frame(value):
        columns = columns_of(value, role)
        if all(map(is_number, columns)):
            return value
        entries = [np.array(column.to_list(), dtype=object) for column in columns]
        shape = np.shape(value)
        array = entries[0] if len(shape) == 1 else np.stack(entries, axis=1)
    else:
        array = as_numpy(value, role)
    if array.dtype.kind not in "OUST":
        return array
    return np.array([_number(entry, role, advice) for entry in array.ravel()], float).reshape(array.shape)


def missing_entries(values: np.ndarray) -> np.ndarray:
    """Where an array has None, NaN, NaT or what pandas has for them."""
    if values.dtype.kind == "O":
        return np.array([is_missing(entry) for entry in values.ravel()], bool).reshape(values.shape)
    if values.dtype.kind in "Mm":
        return np.isnat(values)
    return np.isnan(values) if values.dtype.kind in "fc" else np.zeros(values.shape, bool)


def is_missing(entry: Any) -> bool:
    """None, NaN, NaT and what pandas has for them; empty text is text."""
    if entry is None or type(entry).__name__ in ("NAType", "NaTType") or entry is np.ma.masked:
        return True
    if isinstance(entry, np.datetime64 | np.timedelta64):
        return bool(np.isnat(entry))
    return isinstance(entry, float | np.floating) and bool(np.isnan(entry))


def _number(entry: Any, role: str, advice: str) -> float:
    if _is_time(entry):
        raise InputTypeError(
            f"{role} holds times ({type(entry).__name__}), which can't be used. Convert them to numbers, such as days "
            "since a fixed date."
        )
    if is_missing(entry):
        return float("nan")
    try:
        return float(entry)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{role} has an entry {entry!r:.60}, which is no number. {advice}") from error


def _is_time(entry: Any) -> bool:
    """Whether it is a date, a time or a duration, also one of NumPy that is missing."""
    known = isinstance(entry, date | timedelta | np.datetime64 | np.timedelta64)
    return known and type(entry).__name__ != "NaTType"


def _unmasked(value: np.ma.MaskedArray) -> np.ndarray:
    mask, data = np.ma.getmaskarray(value), np.array(value.data)
    if data.dtype.kind in "fiub":
        data = data.astype(np.result_type(data.dtype, np.float32))
        data[mask] = np.nan
    elif data.dtype.kind in "Mm":
        data[mask] = "NaT"
    elif data.dtype.names is None and mask.any():
        data = data.astype(object)
        data[mask] = None
    return data
