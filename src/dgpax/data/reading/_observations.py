"""What is worth saying about a column that was understood: what was taken off, filled in or passed over."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from ._columns import Draft
from ._dates import COMPACT, MONTH, QUARTER, TWO_DIGITS, ZONE
from ._decide import MARKS, ORDERS
from ._gaps import ALWAYS
from ._lines import is_value
from ._numbers import is_unit, number
from ._remarks import Remark
from ._words import lines_named
from ._written import CATEGORY, DATE, EMPTY, NUMBER, TIME, Wishes

CODES_OF_GAPS = frozenset({-999.0, -9999.0, -99999.0, -999.9, -999.99, -9999.9})
MOST_DIGITS = 15
SOME = 0.2
"""The share of numbers among words that is worth a note."""
_LIKE_VALUES = re.compile(r"[-+~<>=≤≥≈'\"]*\s*\d[\d.,:/'\" -]*")
_PECULIAR = {
    MONTH: "Months are taken as their first day",
    QUARTER: "Quarters are taken as their first day",
    TWO_DIGITS: "Two digits are taken as years from 1970 to 2069",
    COMPACT: "Eight digits are taken as dates",
    ZONE: "Times with a zone are in UTC",
}


def observations(draft: Draft, convention: int | None, lines: Sequence[int], wishes: Wishes) -> Iterator[Remark]:
    """Remarks on a column; those that were as true of the training table aren't repeated."""
    yield from _on_gaps(draft, lines, wishes)
    yield from _on_a_change(draft, convention)
    if draft.kind == NUMBER:
        yield from _on_numbers(draft, convention, lines)
    if draft.kind == DATE and not draft.learnt:
        for remark in {cell.remark: None for cell in draft.cells.values() if cell.remark}:
            text = next(text for text, cell in draft.cells.items() if cell.remark == remark)
            moment = draft.cells[text].by(convention or 0)
            yield Remark(
                _PECULIAR[remark], draft.name, f"{text!r} is {moment.isoformat(' ').removesuffix(' 00:00:00')}"
            )
    if draft.kind == TIME and not draft.learnt and any(cell.first >= 24.0 for cell in draft.cells.values()):
        text = next(text for text, cell in draft.cells.items() if cell.first >= 24.0)
        yield Remark(
            "Durations are taken in hours and minutes", draft.name, f"{text!r} is {draft.cells[text].first:g} h"
        )
    if draft.kind == CATEGORY and not draft.learnt and draft.name not in wishes.categories:
        yield from _on_words(draft)


def _on_gaps(draft: Draft, lines: Sequence[int], wishes: Wishes) -> Iterator[Remark]:
    quiet = {""} | set(wishes.gaps) | set(draft.learnt.gaps if draft.learnt else ())
    for text, count in draft.gaps.items():
        plain = text.lower() in ALWAYS and draft.kind in (NUMBER, EMPTY)
        if text not in quiet and not plain:
            first = lines_named([lines[draft.texts.index(text)]])
            yield Remark(
                f"{text!r} is taken as a gap", draft.name, f"{count} of {len(draft.texts)} rows, first {first}"
            )


def _on_a_change(draft: Draft, convention: int | None) -> Iterator[Remark]:
    """On a convention that is beyond doubt, and not that of the training table."""
    before = "" if draft.learnt is None else draft.learnt.decimal or draft.learnt.dates
    if convention is None or draft.is_open or before in ("", MARKS[convention], ORDERS[convention]):
        return
    text = next(text for text, cell in draft.cells.items() if cell.by(1 - convention) is None)
    value = draft.cells[text].by(convention)
    yield Remark("Written otherwise than in the training data", draft.name,
                 f"{text!r} is {_written(value) if draft.kind == NUMBER else value.date()}")  # fmt: skip


def _on_numbers(draft: Draft, convention: int | None, lines: Sequence[int]) -> Iterator[Remark]:
    which, learnt = convention or 0, draft.learnt
    for unit in {cell.remark: None for cell in draft.cells.values() if cell.remark}:
        if not learnt or learnt.unit != unit:
            text = next(text for text, cell in draft.cells.items() if cell.remark == unit)
            yield Remark(f"{unit!r} is taken off", draft.name, f"{text!r} is {_written(draft.cells[text].by(which))}",
                         "" if is_unit(unit) else "If these are labels, say --category with the name.")  # fmt: skip
    if learnt and learnt.unit and not any(cell.remark for cell in draft.cells.values()):
        text = next(iter(draft.cells))
        yield Remark(f"Numbers had {learnt.unit!r} beside them in the training data", draft.name,
                     f"{text!r} is taken to be in the same unit")  # fmt: skip
    if convention == 1 and not draft.is_open and not (learnt and learnt.decimal):
        text = next(text for text, cell in draft.cells.items() if cell.first is None)
        yield Remark(
            "Decimal commas or dots for thousands", draft.name, f"{text!r} is {_written(draft.cells[text].second)}"
        )
    if learnt:
        return
    digits = [text for text in draft.cells if text.isdigit()]
    if digits and len(digits) == len(draft.cells) and len({len(text) for text in digits}) == 1 < len(digits[0]) - 1:
        led = [text for text in digits if text.startswith("0")]
        if led:
            yield Remark("Leading zeros, as codes have, are dropped", draft.name, f"{led[0]!r} is {int(led[0])}",
                         "If these are codes, say --category with the name.")  # fmt: skip
    long = [text for text in digits if len(text) > MOST_DIGITS]
    if long:
        yield Remark("Numbers of many digits, as identifiers have, are rounded", draft.name,
                     f"{long[0]!r} is {float(long[0]):.15e}", "If these are names of rows, --ignore them.")  # fmt: skip
    yield from _on_codes(draft, which, lines)


def _on_codes(draft: Draft, which: int, lines: Sequence[int]) -> Iterator[Remark]:
    values = {text: cell.by(which) for text, cell in draft.cells.items()}
    codes = [text for text, value in values.items() if value in CODES_OF_GAPS]
    if len(codes) == 1 and len(values) > 1 and all(value >= 0.0 for text, value in values.items() if text != codes[0]):
        line = lines_named([lines[draft.texts.index(codes[0])]])
        yield Remark(f"{codes[0]}, which often means a gap, is taken as a number", draft.name, f"first in {line}",
                     f"If it means a gap, say --gap={shlex.quote(codes[0])}.")  # fmt: skip


def _on_words(draft: Draft) -> Iterator[Remark]:
    """On columns of text in which many cells are values, or look like some: 18-25, 2020-28-01."""
    looking = [text for text in draft.others if _LIKE_VALUES.fullmatch(text) or is_value(text)]
    labels = {text for text in looking if (cell := number(text)) and cell.remark and not is_unit(cell.remark)}
    looking = [text for text in looking if text not in labels]
    if looking and sum(draft.others[text] for text in looking) >= SOME * draft.others.total():
        yield Remark("What looks like numbers or dates is taken as categories", draft.name, f"such as {looking[0]!r}",
                     "If it is to be numbers or dates, write all of it in one of the usual ways.")  # fmt: skip


def _written(value: float) -> str:
    return f"{value:.15g}"
