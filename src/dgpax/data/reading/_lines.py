"""From text to lines of cells: what separates them."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from ...errors import InputError
from ._dates import clock, date
from ._gaps import is_gap
from ._numbers import number
from ._words import lines_named, sentence

SEPARATORS = "\t;|,"
"""In the order in which they are believed where several fit."""
ABSENT = "\x1f"
"""Separates nothing: a sign that tables don't have."""
LOOKED_AT = 200
_DIRECTIVE = re.compile(r"\"?sep=(.)\"?[ \t,;|]*(?:\r\n|\r|\n)", re.IGNORECASE)


class Line(NamedTuple):
    """The cells of a row, the line of the file that it begins in, and whether blank lines stand before it."""

    number: int
    cells: list[str]
    after_blank: bool = False

    @property
    def filled(self) -> int:
        """How many cells have something in them."""
        return sum(map(bool, self.cells))


class Separated(NamedTuple):
    """The lines that have something in them, what separates their cells ("" if they have one each), and notes."""

    lines: list[Line]
    separator: str
    notes: tuple[str, ...] = ()


def separated(text: str, where: str) -> Separated:
    """Tell cells apart."""
    directive = _DIRECTIVE.match(text)
    separator = directive[1] if directive else _separator(text)
    first = 2 if directive else 1
    if separator == '"' or separator.isalnum():
        raise InputError(f"{where} says sep={separator} in line 1, which can't separate cells. Correct this line.")
    body = text[directive.end() :] if directive else text
    if not separator and (lines := _by_spaces(body)):
        return Separated(lines, " ", ("The cells are separated by spaces.",))
    reader = csv.reader(
        io.StringIO(body, newline=""), delimiter=separator or ABSENT, skipinitialspace=True, strict=True
    )
    lines: list[Line] = []
    empty: list[int] = []
    before, blank = 0, False
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                lines.append(Line(before + first, cells, blank))
            blank = not any(cells)
            if blank and (cells or not separator):
                empty.append(before + first)
            before = reader.line_num
    except csv.Error as error:
        raise InputError(
            f"{where}: the cells from line {before + first} on can't be told apart ({error}). Is a quotation mark "
            "opened there and not closed, or is there text after a closed one? Within quotes, write quotation marks "
            "twice."
        ) from error
    within = [line for line in empty if lines and (separator or lines[0].number < line < lines[-1].number)]
    notes = (f"{sentence(lines_named(within))}, with empty cells only, left out.",) if within else ()
    return Separated(lines, separator, notes)


def is_value(cell: str) -> bool:
    """Whether it is a number, a date or a time rather than a name."""
    return number(cell) is not None or date(cell) is not None or clock(cell) is not None


def has_values(line: Line) -> bool:
    """Whether a line has numbers, dates or times, and so is none of names."""
    return any(is_value(cell) for cell in line.cells if not is_gap(cell))


def _separator(text: str) -> str:
    """The sign that splits most lines into equally many cells, names and values alike."""
    scores = {sign: _score(text, sign) for sign in SEPARATORS}
    best = max(scores, key=lambda sign: scores[sign])
    return best if scores[best] > 0.0 else ""


def _score(text: str, sign: str) -> float:
    """The share of lines that have the usual number of cells; 0 if that is one cell or there is no line of names."""
    lines = list(islice(_tolerantly(text, sign), LOOKED_AT))
    widths = Counter(map(len, lines))
    split = {width: count for width, count in widths.items() if width > 1}
    if not split:
        return 0.0
    width = max(split, key=lambda width: (split[width], width))
    first = next(index for index, cells in enumerate(lines) if len(cells) == width)
    values = has_values(Line(0, lines[first]))
    if values and first > 0 and len(lines[first - 1]) == 1:
        return 0.0
    share = split[width] / len(lines)
    return share / 2 if values and first > 0 else share


def _by_spaces(text: str) -> list[Line]:
    """Lines of equally many words of which most are values; none if they aren't."""
    rows = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [Line(number, cells) for number, cells in rows if cells]
    widths = {len(line.cells) for line in lines}
    if len(widths) != 1 or widths == {1} or '"' in text:
        return []
    cells = [cell for line in lines[1:LOOKED_AT] for cell in line.cells]
    return lines if 2 * sum(map(is_value, cells)) > len(cells) else []


def _tolerantly(text: str, sign: str) -> Iterator[list[str]]:
    with suppress(csv.Error):
        for cells in csv.reader(io.StringIO(text, newline=""), delimiter=sign, skipinitialspace=True):
            if any(cell.strip() for cell in cells):
                yield [cell.strip() for cell in cells]
