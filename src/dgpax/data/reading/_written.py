"""How cells are written: what the user says, and what was learnt from the training table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...errors import InputError

NUMBER, DATE, TIME, CATEGORY, EMPTY = "number", "date", "time", "category", "empty"
DAY_FIRST, MONTH_FIRST = "day-first", "month-first"


@dataclass(frozen=True)
class Written:
    """How the cells of a column of the training table were written, kept with the model for tables to come.

    `kind` is number, date, time or category; `decimal` is the decimal mark and `dates` says whether days or months come
    first, both "" where nothing told; `unit` is what stood beside numbers; `gaps` are words that meant a gap.
    """

    name: str
    kind: str
    decimal: str = ""
    dates: str = ""
    unit: str = ""
    gaps: tuple[str, ...] = ()


class Wishes(NamedTuple):
    """What the user says about a file, where it leaves a choice; `categories` are columns to be taken as text."""

    decimal: str | None = None
    dates: str | None = None
    gaps: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    def checked(self) -> Wishes:
        """Or an error that says what there is."""
        if self.decimal not in (None, ".", ","):
            raise InputError(f"The decimal mark can be '.' or ','; got {self.decimal!r}.")
        if self.dates not in (None, DAY_FIRST, MONTH_FIRST):
            raise InputError(f"Dates can be {DAY_FIRST} or {MONTH_FIRST}; got {self.dates!r}.")
        return self
