"""Notes on columns: the same remark on several is said once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ._words import quoted


class Remark(NamedTuple):
    """What was decided, on which column, with an example, and what to do if that is wrong."""

    what: str
    column: str
    example: str
    advice: str = ""

    def text(self, columns: list[str]) -> str:
        """The note, on these columns."""
        advice = f" {self.advice}" if self.advice else ""
        return f"{self.what} in the column{'s' * (len(columns) > 1)} {quoted(columns)}: {self.example}.{advice}"


def notes_of(remarks: Iterable[Remark]) -> list[str]:
    """One note for every kind of remark, with the example of the first column."""
    grouped: dict[tuple[str, str], list[Remark]] = {}
    for remark in remarks:
        grouped.setdefault((remark.what, remark.advice), []).append(remark)
    return [alike[0].text([remark.column for remark in alike]) for alike in grouped.values()]
