"""What is wrong with a column, where, and what to do about it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ._columns import Draft
from ._decide import MARKS, ORDERS
from ._numbers import MAGNITUDES, PERCENT, is_currency
from ._words import lines_named
from ._written import CATEGORY, DATE, EMPTY, NUMBER, Wishes

PLURALS = {NUMBER: "numbers", DATE: "dates", "time": "times of day", CATEGORY: "text"}
MOST_SHOWN = 3


def problem_of(draft: Draft, lines: Sequence[int], wishes: Wishes) -> str:
    """Why a column can't be used as it is, or "" if it can."""
    if draft.kind in (CATEGORY, EMPTY):
        return ""
    for found in (_of_others(draft, lines), _of_conventions(draft, lines, wishes), _of_units(draft, lines)):
        if found:
            return found
    return ""


def _of_others(draft: Draft, lines: Sequence[int]) -> str:
    if not draft.others:
        return ""
    shown = [_at(draft, lines, [text]) for text in list(draft.others)[:MOST_SHOWN]]
    more = f", … ({len(draft.others)} such values)" if len(draft.others) > MOST_SHOWN else ""
    kinds = PLURALS[draft.kind]
    found = f"{', '.join(shown)}{more}"
    if draft.learnt:
        return (
            f"The column {draft.name!r} had {kinds} in the training data, and has {found}. Mend these cells, or leave "
            "them empty."
        )
    rows = sum(text in draft.cells for text in draft.texts)
    return (
        f"The column {draft.name!r} holds {kinds} in {rows} of {len(draft.texts)} rows, and {found}. Mend these cells "
        f"or leave them empty; if they mean a gap, say --gap {shlex.quote(next(iter(draft.others)))}; if the column "
        f"holds labels, --category {shlex.quote(draft.name)} (for a target, --task classification)."
    )


def _of_conventions(draft: Draft, lines: Sequence[int], wishes: Wishes) -> str:
    wish = wishes.decimal if draft.kind == NUMBER else wishes.dates if draft.kind == DATE else None
    names = MARKS if draft.kind == NUMBER else ORDERS
    option = "--decimal" if draft.kind == NUMBER else "--dates"
    if wish and names.index(wish) not in draft.conventions:
        against = [text for text, cell in draft.cells.items() if cell.by(names.index(wish)) is None]
        return (
            f"The column {draft.name!r} has {_at(draft, lines, against[:1])}, which isn't written as {option} {wish} "
            "says. Leave that option out, or mend the column."
        )
    open_cells = [text for text, cell in draft.cells.items() if cell.is_open] if draft.kind == NUMBER else []
    with_dot, with_comma = ([text for text in open_cells if mark in text] for mark in ".,")
    if with_dot and with_comma and draft.is_open and not wish:
        return (
            f"The column {draft.name!r} has {_at(draft, lines, with_dot[:1])} and {_at(draft, lines, with_comma[:1])}, "
            "of which only one mark can be the decimal one. Write them in one way, or say --decimal . or --decimal ,"
        )
    if draft.conventions:
        return ""
    first, second = ([text for text, cell in draft.cells.items() if cell.by(1 - which) is None] for which in (0, 1))
    what = "dots and with commas as decimal marks" if draft.kind == NUMBER else "days first and with months first"
    return (
        f"The column {draft.name!r} has {PLURALS[draft.kind]} with {what}: {_at(draft, lines, first[:1])} and "
        f"{_at(draft, lines, second[:1])}. Write them in one way."
    )


def _of_units(draft: Draft, lines: Sequence[int]) -> str:
    if draft.kind != NUMBER:
        return ""
    units = {cell.remark: text for text, cell in reversed(draft.cells.items())}
    named = [unit for unit in units if unit]
    bare_matters = any(not is_currency(unit) for unit in named)
    if len(named) > 1 or (named and "" in units and bare_matters):
        both = " and ".join(_at(draft, lines, [text]) for text in list(units.values())[:2])
        return f"The column {draft.name!r} mixes units: {both}. Write all its numbers in one unit."
    learnt = draft.learnt.unit if draft.learnt else ""
    if draft.learnt and named and named != [learnt] and (learnt or named[0] in PERCENT | MAGNITUDES):
        had = f"had numbers in {learnt!r}" if learnt else "had bare numbers"
        return (
            f"The column {draft.name!r} {had} in the training data, and has {_at(draft, lines, [units[named[0]]])}. "
            "Write them as they were."
        )
    return ""


def _at(draft: Draft, lines: Sequence[int], texts: Sequence[str]) -> str:
    """The first place of these cells."""
    index = next(index for index, text in enumerate(draft.texts) if text in texts)
    return f"{draft.texts[index][:40]!r} in {lines_named([lines[index]])}"
