"""What kind of values a column holds, from its cells alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ._cell import Cell, conventions
from ._dates import clock, compact_date, date
from ._gaps import is_gap, is_gap_among_numbers, is_gap_among_words
from ._numbers import FEWEST_OF_A_UNIT, is_unit, number
from ._written import CATEGORY, DATE, EMPTY, NUMBER, TIME, Wishes, Written

Reader = Callable[[str], Cell | None]
READERS: dict[str, tuple[Reader, ...]] = {NUMBER: (number,), DATE: (date, compact_date), TIME: (clock,)}
"""In the order in which they are tried."""


@dataclass(frozen=True)
class Draft:
    """A column whose kind is known, and of whose cells not all may be understood.

    `cells` are the different ones that were, `others` those that weren't, `gaps` the marks of gaps, all with their
    counts; `learnt` is how the column was written in the training table.
    """

    name: str
    texts: Sequence[str]
    kind: str
    cells: dict[str, Cell] = field(default_factory=dict)
    others: Counter[str] = field(default_factory=Counter)
    gaps: Counter[str] = field(default_factory=Counter)
    learnt: Written | None = None

    @cached_property
    def conventions(self) -> frozenset[int]:
        """Which of the two conventions read all cells."""
        return conventions(self.cells.values())

    @cached_property
    def is_open(self) -> bool:
        """Whether both do, with different results."""
        return len(self.conventions) == 2 and any(cell.is_open for cell in self.cells.values())


def draft(name: str, texts: Sequence[str], wishes: Wishes, learnt: Written | None) -> Draft:
    """Read a column as what most of its cells are."""
    counts = Counter(texts)
    further = {*wishes.gaps, *(learnt.gaps if learnt else ())}
    gaps = Counter({text: count for text, count in counts.items() if is_gap(text, further)})
    present = Counter({text: count for text, count in counts.items() if text not in gaps})
    doubtful = Counter({text: count for text, count in present.items() if is_gap_among_numbers(text)})
    certain = present - doubtful
    if not certain and not (present and learnt and learnt.kind == CATEGORY):
        return Draft(name, texts, EMPTY, gaps=counts, learnt=learnt)
    if name in wishes.categories or (learnt and learnt.kind == CATEGORY):
        return _of_words(name, texts, present, gaps, learnt)
    compact = not learnt and all(map(compact_date, certain))
    for kind, readers in READERS.items():
        if compact and kind == NUMBER:
            continue
        if learnt and learnt.kind not in (kind, EMPTY):
            continue
        read = {text: cell for text in certain if (cell := _first(readers, text)) is not None}
        if kind == NUMBER:
            read = _without_labels(read)
        understood = sum(certain[text] for text in read)
        if understood == certain.total() or 2 * understood > certain.total() or (learnt and learnt.kind == kind):
            others = Counter({text: count for text, count in certain.items() if text not in read})
            return Draft(name, texts, kind, read, others, gaps + doubtful, learnt)
    return _of_words(name, texts, present, gaps, learnt)


def _first(readers: Iterable[Reader], text: str) -> Cell | None:
    return next((cell for reader in readers if (cell := reader(text)) is not None), None)


def _of_words(
    name: str, texts: Sequence[str], present: Counter[str], gaps: Counter[str], learnt: Written | None
) -> Draft:
    signs = {text for text in present if not learnt and is_gap_among_words(text, present.keys())}
    words = Counter({text: count for text, count in present.items() if text not in signs})
    marks = gaps + Counter({text: present[text] for text in signs})
    return Draft(name, texts, CATEGORY, others=words, gaps=marks, learnt=learnt)


def _without_labels(read: dict[str, Cell]) -> dict[str, Cell]:
    """Without numbers that words make labels, as "1st", "2nd", "3rd"; the same word in all cells is a unit."""
    labels = {text: cell for text, cell in read.items() if cell.remark and not is_unit(cell.remark)}
    same = len({cell.remark for cell in read.values()}) == 1
    if labels and not (same and len({cell.first or cell.second for cell in read.values()}) >= FEWEST_OF_A_UNIT):
        return {text: cell for text, cell in read.items() if text not in labels}
    return read
