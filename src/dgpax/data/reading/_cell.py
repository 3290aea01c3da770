"""What a cell may mean: under the one convention, and under the other."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple


class Cell(NamedTuple):
    """A cell as one of two conventions reads it, and as the other does; None where it can't be.

    For numbers these are the dot and the comma as the decimal mark, for dates days and months first. `remark` is the
    unit beside a number, or what is peculiar about a date.
    """

    first: Any
    second: Any
    remark: str = ""

    def by(self, convention: int) -> Any:
        """What it is by one of the conventions, 0 or 1."""
        return self.second if convention else self.first

    @property
    def is_open(self) -> bool:
        """Whether both conventions read it, each in its own way."""
        return self.first is not None and self.second is not None and self.first != self.second


def conventions(cells: Collection[Cell]) -> frozenset[int]:
    """Which of the two, 0 and 1, read all cells."""
    return frozenset(which for which in (0, 1) if all(cell.by(which) is not None for cell in cells))
