"""Where the names of the columns stand."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

from ...errors import InputError
from ._lines import LOOKED_AT, Line, has_values, is_value
from ._numbers import number
from ._words import lines_named, on_one_line, sentence

MOST_ABOVE = 50
"""Lines that may stand above the table."""
_YEAR = re.compile(r"(1[89]|20)\d\d")


class Sheet(NamedTuple):
    """The names of the columns, the line they stand in (0: none), the lines below, and notes."""

    names: list[str]
    line: int
    rows: list[Line]
    notes: tuple[str, ...] = ()


def with_head(lines: list[Line], where: str) -> Sheet:
    """Find the line of names: below titles and comments, above the values."""
    if not lines:
        raise InputError(f"{where} can't be read as a table of separated values: it is empty.")
    start = _start(lines)
    head, rows, notes = lines[start], lines[start + 1 :], []
    if start > 0:
        above = lines_named([line.number for line in lines[:start]])
        notes.append(f"{sentence(above)} above the table left out: {on_one_line(lines[0].cells)}.")
    names = head.cells
    if _is_of_values(head, rows):
        notes.append(
            f"Line {head.number} holds values, so there are no names; columns are called column 1, column 2, …"
        )
        return Sheet([f"column {index + 1}" for index in range(len(names))], 0, [head, *rows], tuple(notes))
    if any(is_value(cell) and not _YEAR.fullmatch(cell) for cell in names):
        notes.append(f"Line {head.number} is taken to be the names, though it has values: {on_one_line(names)}.")
    return Sheet(names, head.number, rows, tuple(notes))


def _start(lines: list[Line]) -> int:
    widths = Counter(len(line.cells) for line in lines)
    usual = max(widths, key=lambda width: (width > 1 and widths[width] > 1, widths[width], width))
    start = next(index for index, line in enumerate(lines) if len(line.cells) == usual)
    if start > 0 and has_values(lines[start]) and _may_be_names(lines[start - 1]):
        return start - 1
    most = min(MOST_ABOVE, len(lines) - 2)
    while start < most and _is_title(*lines[start : start + 3]):
        start += 1
    while start < most and lines[start].cells[0].startswith("#") and not has_values(lines[start + 1]):
        start += 1
    for index in range(start + 1, min(MOST_ABOVE, len(lines) // 2)):
        if lines[index].after_blank and len(lines[index].cells) == usual and _heads(lines[index], lines[index + 1]):
            return index
    return start


def _may_be_names(line: Line) -> bool:
    """Names right above values, even if they are too few or too many for them."""
    return line.filled > 1 and any(cell and not is_value(cell) for cell in line.cells)


def _is_title(line: Line, following: Line, third: Line) -> bool:
    """One cell with a title, above several with names, above values."""
    alone = line.filled == 1 < following.filled and not has_values(line) and not has_values(following)
    return alone and (len(line.cells) > 2 or has_values(third))


def _heads(line: Line, following: Line) -> bool:
    return not has_values(line) and has_values(following)


def _is_of_values(head: Line, rows: list[Line]) -> bool:
    """Whether the first line is one of values rather than of names: years and 1, 2, 3 may be names; 3.5 isn't, nor is a
    date above dates, or a word beside numbers that stands below itself."""
    cells = [cell for cell in head.cells if cell]
    values = {cell for cell in cells if number(cell) is not None}
    if any(not cell.isdigit() for cell in values) or _has_date_above_dates(head, rows):
        return True
    if all(cell in values for cell in cells):
        numbers = [float(cell) for cell in cells]
        return len(numbers) < 2 or any(b - a != 1 for a, b in pairwise(numbers))
    words = [(index, cell) for index, cell in enumerate(head.cells) if values and cell and cell not in values]
    return any(cell == row.cells[index] for index, cell in words for row in rows if index < len(row.cells))


def _has_date_above_dates(head: Line, rows: list[Line]) -> bool:
    for index, cell in enumerate(head.cells):
        below = [row.cells[index] for row in rows[:LOOKED_AT] if index < len(row.cells) and row.cells[index]]
        if _is_moment(cell) and below and all(map(_is_moment, below)):
            return True
    return False


def _is_moment(cell: str) -> bool:
    return number(cell) is None and is_value(cell)
