"""Names, cells and lines in messages."""

from __future__ import annotations

from collections.abc import Sequence

LONGEST = 60


def quoted(names: Sequence[str], most: int = 20) -> str:
    """`'a', 'b'`, cut after so many."""
    shown = ", ".join(repr(name[:LONGEST]) for name in names[:most])
    return f"{shown}, … ({len(names)} in all)" if len(names) > most else shown


def lines_named(numbers: Sequence[int], most: int = 5) -> str:
    """`line 3`, `lines 3 and 7`, `lines 3, 7, … (12 in all)`."""
    if len(numbers) == 1:
        return f"line {numbers[0]}"
    if len(numbers) <= most:
        return f"lines {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
    return f"lines {', '.join(map(str, numbers[:most]))}, … ({len(numbers)} in all)"


def sentence(text: str) -> str:
    """With a capital letter."""
    return text[:1].upper() + text[1:]


def on_one_line(cells: Sequence[str]) -> str:
    """The beginning of a line of cells, to recognise it by."""
    text = " ".join(" | ".join(cell for cell in cells if cell).split())
    return repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")
