"""Columns written as CSV, safe for what people open it with, and never over what they were made from."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""
_NUMBER = re.compile(r"[-+]?[\d.,:' /%-]+(?:[eE][-+]?\d+)?")


def csv_text(columns: Mapping[str, Sequence[Any]]) -> str:
    """A CSV of columns of equal length; floats are written so that they are read back exactly.

    Text that a spreadsheet would run as a formula gets an apostrophe in front.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_safe, columns))
    writer.writerows([_safe(cell) for cell in row] for row in zip(*columns.values(), strict=True))
    return text.getvalue()


def refuse_overwriting(output: Path, *sources: str | Path) -> None:
    """Raise if what is to be written is one of the files that are read."""
    for source in sources:
        if output.exists() and Path(source).exists() and output.samefile(source):
            raise InputError(f"--output {output} is a file that is read here, and would be lost. Name another one.")


def _safe(cell: Any) -> Any:
    risky = isinstance(cell, str) and cell.startswith(FORMULA) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if risky else cell
