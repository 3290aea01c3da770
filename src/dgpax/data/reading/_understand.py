"""From the cells of all columns to their values, with notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ._columns import Draft, draft
from ._decide import MARKS, ORDERS, decide, evidence
from ._observations import observations
from ._problems import problem_of
from ._remarks import Remark, notes_of
from ._table import TableColumn, objects
from ._words import quoted
from ._written import CATEGORY, DATE, EMPTY, NUMBER, Wishes, Written


def understand(
    cells: Mapping[str, Sequence[str]], lines: Sequence[int], separator: str, wishes: Wishes, like: Sequence[Written]
) -> tuple[dict[str, TableColumn], list[str]]:
    """The columns of a table of text by name, and notes."""
    learnt = {written.name: written for written in like}
    drafts = [draft(name, texts, wishes, learnt.get(name)) for name, texts in cells.items()]
    known = evidence(drafts, separator)
    columns: dict[str, TableColumn] = {}
    remarks: list[Remark] = []
    for one in drafts:
        problem = problem_of(one, lines, wishes)
        if problem:
            columns[one.name] = TableColumn(one.name, Written(one.name, one.kind), _words(one), one.texts, problem)
            continue
        decision = decide(one, wishes, known)
        columns[one.name] = _column(one, decision.convention, wishes)
        remarks += [*([decision.remark] if decision.remark else []),
                    *observations(one, decision.convention, lines, wishes)]  # fmt: skip
    empty = [name for name, column in columns.items() if column.written.kind == EMPTY and name not in learnt]
    return columns, [*notes_of(remarks), *_on_empty(empty)]


def _column(one: Draft, convention: int | None, wishes: Wishes) -> TableColumn:
    mark = "" if convention is None else MARKS[convention]
    order = "" if convention is None else ORDERS[convention]
    unit = next((cell.remark for cell in one.cells.values() if cell.remark), "") if one.kind == NUMBER else ""
    gaps = tuple(sorted(text for text in one.gaps if text))
    written = Written(
        one.name,
        one.kind,
        decimal=(mark or wishes.decimal or "") if one.kind == NUMBER else "",
        dates=(order or wishes.dates or "") if one.kind == DATE else "",
        unit=unit,
        gaps=gaps,
    )
    return TableColumn(one.name, written, _values(one, convention or 0), one.texts)


def _values(one: Draft, convention: int) -> np.ndarray:
    if one.kind == EMPTY:
        return np.full(len(one.texts), np.nan)
    if one.kind == CATEGORY:
        return _words(one)
    values = {text: cell.by(convention) for text, cell in one.cells.items()}
    if one.kind == DATE:
        return objects([values.get(text) for text in one.texts])
    return np.array([values.get(text, np.nan) for text in one.texts], float)


def _words(one: Draft) -> np.ndarray:
    return objects([None if text in one.gaps else text for text in one.texts])


def _on_empty(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    which = f"columns {quoted(names)}, which are" if len(names) > 1 else f"column {quoted(names)}, which is"
    return [f"No value at all in the {which} left out."]
