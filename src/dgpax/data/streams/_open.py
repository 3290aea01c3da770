"""What a stream is made of, from what the user names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...settings import user_cache
from .._arrays import as_numpy
from .._encoding import Encoding
from .._frames import column_names, frame_to_numpy, is_frame
from ._convert import converted
from ._source import ArrayRows, RowSource, mapped


class Opened(NamedTuple):
    """Rows of numbers, their columns, and how a table's inputs became these."""

    source: RowSource
    target: Any
    inputs: Any
    encoding: Encoding | None = None


def open_source(source: Any, target: Any, inputs: Any, cache: str | os.PathLike[str] | None) -> Opened:
    """A table is encoded, a .npy file is mapped into memory, an object that can read rows is asked to."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.suffix != ".parquet" and not path.is_dir():
            return Opened(ArrayRows(mapped(path)), target, inputs)
        folder = user_cache() / "streams" if cache is None else Path(cache)
        targets = _names(target, "target")
        found = converted(path, targets, None if inputs is None else _names(inputs, "inputs"), folder)
        return Opened(found.source, targets, None, found.encoding)
    if is_frame(source):
        return _of_frame(source, _names(target, "target"), inputs)
    if isinstance(source, RowSource):
        return Opened(source, target, inputs)
    return Opened(ArrayRows(as_numpy(source, "source")), target, inputs)


def _of_frame(frame: Any, targets: list[str], inputs: Any) -> Opened:
    names = column_names(frame, "source")
    own = [name for name in names if name not in targets] if inputs is None else _names(inputs, "inputs")
    unknown = [name for name in (*targets, *own) if name not in names]
    if unknown:
        known = ", ".join(map(repr, names))
        raise InputError(f"The table has no column {', '.join(map(repr, unknown))}. There are: {known}.")
    encoding = Encoding.of(frame[own])
    x = encoding.apply(frame[own])
    y = frame_to_numpy(frame[targets], "target", x.dtype)
    return Opened(ArrayRows(np.hstack([x, y]), (*encoding.output_names, *targets)), targets, None, encoding)


def _names(columns: Any, role: str) -> list[str]:
    names: list[Any] = [columns] if isinstance(columns, str | int) else list(columns)
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"The columns of a table are asked for by name: stream({role}=...) got {columns!r}.")
    return names
