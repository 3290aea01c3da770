"""Data frames and series of pandas and polars, recognised without importing either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError


def is_frame(value: Any) -> bool:
    """Is it an object of pandas or polars (or of a class derived from theirs)?"""
    return _library(value) is not None


def _library(value: Any) -> str | None:
    packages = (base.__module__.partition(".")[0] for base in type(value).__mro__)
    return next((package for package in packages if package in ("pandas", "polars")), None)


def column_names(frame: Any, role: str) -> tuple[str, ...]:
    """The names of the columns; () where they aren't all non-empty text, as for the default 0, 1, 2 of pandas."""
    labels = (frame.name,) if len(_shape(frame, role)) == 1 else tuple(frame.columns)
    if not all(isinstance(label, str) and label for label in labels):
        return ()
    repeated = sorted({label for label in labels if labels.count(label) > 1})
    if repeated:
        raise InputError(f"{role} has several columns of the same name: {_quoted(repeated)}. Rename them.")
    return tuple(str(label) for label in labels)


def select_columns(frame: Any, names: Sequence[str], role: str) -> Any:
    """The frame with exactly these columns in this order; missing and unexpected ones are an error."""
    present = column_names(frame, role)
    missing = [name for name in names if name not in present]
    unexpected = [name for name in present if name not in names]
    if missing or unexpected:
        complaints = [f"missing: {_quoted(missing)}"] * bool(missing)
        complaints += [f"unexpected: {_quoted(unexpected)}"] * bool(unexpected)
        raise InputError(
            f"The columns of {role} aren't those of the training data; {'; '.join(complaints)}. "
            f"Pass a frame with the columns {_quoted(names)}, in any order."
        )
    return frame[list(names)]


def frame_to_numpy(frame: Any, role: str, default: np.dtype) -> np.ndarray:
    """A float array [N, D], or [N] of a series; nulls become NaN; float32 if every column is, else `default`."""
    columns = columns_of(frame, role)
    refused = [column for column in columns if not is_number(column)]
    if refused:
        listing = ", ".join(f"{column.name!r} ({column.dtype})" for column in refused)
        raise InputTypeError(
            f"{role} has columns that aren't numbers: {listing}. Encode them as numbers first (text and categories "
            "one-hot, e.g. pandas.get_dummies, polars' to_dummies; times as days since a fixed day) or leave them out."
        )
    dtype = np.dtype(np.float32) if columns and all(map(_is_float32, columns)) else default
    arrays = [series_to_numpy(column, dtype) for column in columns]
    shape = _shape(frame, role)
    return arrays[0] if len(shape) == 1 else np.array(arrays, dtype).reshape(shape[1], shape[0]).T


def _shape(frame: Any, role: str) -> tuple[int, ...]:
    shape = getattr(frame, "shape", None)
    if not isinstance(shape, tuple):
        raise InputTypeError(
            f"{role} is a {type(frame).__name__}; an array, a data frame or a series is needed. "
            "Call .collect() on a lazy frame first."
        )
    return shape


def columns_of(frame: Any, role: str) -> list[Any]:
    """Its columns as series; a series is its own."""
    if len(_shape(frame, role)) == 1:
        return [frame]
    return frame.get_columns() if _library(frame) == "polars" else [column for _, column in frame.items()]


def is_number(column: Any) -> bool:
    """Does a series hold numbers or truth values?"""
    if _library(column) == "polars":
        return column.dtype.is_numeric() or str(column.dtype) == "Boolean"
    return column.dtype.kind in "fiub"


def _is_float32(column: Any) -> bool:
    return str(column.dtype).lower() == "float32"


def series_to_numpy(column: Any, dtype: np.dtype) -> np.ndarray:
    """The floats of a series of numbers; nulls become NaN."""
    if _library(column) == "polars":
        return column.cast(float).to_numpy().astype(dtype)
    return column.to_numpy(dtype=dtype, na_value=np.nan)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
