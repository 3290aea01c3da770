"""Which convention a column follows: by itself, by the other columns, by the training table, or by custom."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ._columns import Draft
from ._remarks import Remark
from ._written import DATE, DAY_FIRST, MONTH_FIRST, NUMBER, Wishes

MARKS = (".", ",")
ORDERS = (DAY_FIRST, MONTH_FIRST)


class Evidence(NamedTuple):
    """What is known beyond a column: the conventions that others follow beyond doubt, and the separator of cells."""

    decimals: frozenset[int]
    orders: frozenset[int]
    separator: str


class Decision(NamedTuple):
    """The convention, 0 or 1, or None where it makes no difference; and a remark where it was open."""

    convention: int | None
    remark: Remark | None = None


def evidence(drafts: Sequence[Draft], separator: str) -> Evidence:
    """What the columns say that leave no choice."""
    clear = {
        kind: [d.conventions for d in drafts if d.kind == kind and len(d.conventions) == 1] for kind in (NUMBER, DATE)
    }
    return Evidence(
        frozenset(which for found in clear[NUMBER] for which in found),
        frozenset(which for found in clear[DATE] for which in found),
        separator,
    )


def decide(draft: Draft, wishes: Wishes, known: Evidence) -> Decision:
    """The convention of a column of numbers or dates that at least one reads."""
    if not draft.is_open:
        return Decision(min(draft.conventions) if len(draft.conventions) == 1 else None)
    return _decimal(draft, wishes, known) if draft.kind == NUMBER else _order(draft, wishes, known)


def _decimal(draft: Draft, wishes: Wishes, known: Evidence) -> Decision:
    """Where dots, or commas, stand before three digits everywhere: "1.278" is 1.278 or 1278."""
    learnt = draft.learnt.decimal if draft.learnt else ""
    if wishes.decimal or (learnt and len(known.decimals) != 1):
        return Decision(MARKS.index(wishes.decimal or learnt))
    text = next(text for text, cell in draft.cells.items() if cell.is_open)
    mark = MARKS.index("." if "." in text else ",")
    whole = [text for text, cell in draft.cells.items() if not cell.is_open]
    if any(len(re.sub(r"\D", "", text)) > 3 and not re.search(r"\d[., ']\d", text) for text in whole):
        return Decision(mark, _open_number(draft, text, mark))  # 1500 beside 1.278: thousands have no mark
    if len(known.decimals) == 1:
        (convention,) = known.decimals
        told = MARKS[convention] == learnt if learnt else convention == mark and not whole
        return Decision(convention, None if told else _open_number(draft, text, convention))
    thousands = bool(whole) or (known.separator == ";") == (mark == 0)
    convention = 1 - mark if thousands else mark
    return Decision(convention, _open_number(draft, text, convention))


def _open_number(draft: Draft, text: str, convention: int) -> Remark:
    value, sign = draft.cells[text].by(convention), "dot" if "." in text else "comma"
    is_decimal = MARKS[convention] in text
    meaning = "the decimal mark" if is_decimal else "a mark of thousands"
    other = MARKS[1 - convention]
    return Remark(
        f"The {sign} is taken to be {meaning}",
        draft.name,
        f"{text!r} is {value:.15g}",
        f"If it isn't, say --decimal {other!r}.",
    )


def _order(draft: Draft, wishes: Wishes, known: Evidence) -> Decision:
    learnt = draft.learnt.dates if draft.learnt else ""
    if wishes.dates or learnt:
        return Decision(ORDERS.index(wishes.dates or learnt))
    text = next(text for text, cell in draft.cells.items() if cell.is_open)
    if len(known.orders) == 1:
        (convention,) = known.orders
    else:
        american = "/" in text and known.separator != ";" and known.decimals != {1}
        convention = int(american)
    return Decision(
        convention,
        Remark(
            f"Dates are taken to be {ORDERS[convention]}, which they don't show",
            draft.name,
            f"{text!r} is {draft.cells[text].by(convention):%Y-%m-%d}",
            f"If they aren't, say --dates {ORDERS[1 - convention]}.",
        ),
    )
