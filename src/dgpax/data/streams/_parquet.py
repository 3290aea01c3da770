"""Parquet files as columns, a row group at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError, InputTypeError, MissingDataError
from .._encoding import MISSING
from .._table import Column, days

BATCH_ROWS = 100_000


@dataclass(frozen=True)
class Text:
    """A column of text or truth values: the different entries, and which of them every row has."""

    label: str
    entries: tuple[str, ...]
    codes: np.ndarray


@dataclass(frozen=True)
class ParquetFiles:
    """A file, or all of a folder in the order of their names."""

    paths: tuple[Path, ...]

    @classmethod
    def of(cls, path: Path) -> ParquetFiles:
        paths = tuple(sorted(path.rglob("*.parquet"))) if path.is_dir() else (path,)
        if not paths or not path.exists():
            raise MissingDataError(f"There is {'no .parquet file in' if path.exists() else 'nothing at'} {path}.")
        return cls(paths)

    @cached_property
    def num_rows(self) -> int:
        return sum(self._open(path).metadata.num_rows for path in self.paths)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the columns, which all files must have."""
        first, *others = ((path, self._open(path).schema_arrow.names) for path in self.paths)
        for path, names in others:
            if sorted(names) != sorted(first[1]):
                raise InputError(f"{path} has other columns than {first[0]}: {', '.join(map(repr, names))}.")
        return tuple(first[1])

    @property
    def identity(self) -> list[list[Any]]:
        """What changes if a file does."""
        return [[str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] for path in self.paths]

    def chunks(self, names: Sequence[str]) -> Iterator[list[Column | Text]]:
        """These columns, some rows of one row group at a time."""
        for path in self.paths:
            file = self._open(path)
            for number in range(file.metadata.num_row_groups):
                pieces = file.iter_batches(BATCH_ROWS, row_groups=[number], columns=list(names))
                for piece in _readable(pieces, f"Row group {number} of {path}"):
                    yield [_typed(name, piece.column(name)) for name in names]

    def _open(self, path: Path):
        try:
            from pyarrow import ArrowInvalid, parquet  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise MissingDataError("Streams of Parquet files need pyarrow: pip install dgpax[streams].") from error
        try:
            return parquet.ParquetFile(path)
        except (ArrowInvalid, OSError) as error:
            raise InputError(f"{path} can't be read as Parquet: {error}") from error


def _readable(pieces: Iterator[Any], what: str) -> Iterator[Any]:
    from pyarrow import ArrowException  # pyright: ignore[reportMissingImports]

    try:
        yield from pieces
    except (ArrowException, OSError) as error:
        raise InputError(f"{what} can't be read: {error}") from error


def _typed(name: str, values: Any) -> Column | Text:
    """As a data frame's column would be taken."""
    import pyarrow as pa  # pyright: ignore[reportMissingImports]

    label, kind = f"The column {name!r}", values.type
    if pa.types.is_dictionary(kind):
        values, kind = values.cast(kind.value_type), kind.value_type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        wanted = np.float32 if pa.types.is_float32(kind) else np.float64
        return Column(label, (values if pa.types.is_float32(kind) else values.cast(pa.float64())).to_numpy(
            zero_copy_only=False).astype(wanted, copy=False))  # fmt: skip
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        zone = getattr(kind, "tz", None)
        times = values.cast(pa.timestamp("us", zone), safe=False).to_numpy(zero_copy_only=False)
        return Column(label, days(times.astype("datetime64[us]")), is_date=True)
    if pa.types.is_duration(kind):
        return Column(label, days(values.to_numpy(zero_copy_only=False).astype("timedelta64[us]")), is_date=True)
    if pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text(label, values.dictionary_encode())
    raise InputTypeError(f"{label} holds values of type {kind}, which can't be used. Leave it out: inputs=[...].")


def _text(label: str, encoded: Any) -> Text:
    """What is missing is an entry of its own."""
    entries = [str(entry) or MISSING for entry in encoded.dictionary.to_pylist()]
    codes = encoded.indices.fill_null(len(entries)).to_numpy(zero_copy_only=False)
    return Text(label, (*entries, MISSING), codes)
