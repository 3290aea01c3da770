"""Marks of gaps."""

from __future__ import annotations

import re
from collections.abc import Collection

_ALWAYS = r"""na n/a n.a. n.a #n/a #na nan null none ? nat <na> (null) \n nil #null! #div/0! #value! #ref! #num!
#name?"""
_SIGNS = "- -- --- – — . .. ... … * / //"
_WORDS = "n.d. nd missing unknown unbekannt tbd n/d s/d"
ALWAYS = frozenset(_ALWAYS.split()) | {"", "not available", "keine angabe", "k.a.", "k. a."}
"""What is a gap in every column, in lower case."""
SIGNS = frozenset(_SIGNS.split())
"""What is a gap among words, too."""
AMONG_OTHERS = SIGNS | frozenset(_WORDS.split())
"""What is a gap among numbers, dates and times, in lower case."""


def is_gap(cell: str, further: Collection[str] = ()) -> bool:
    """Whether a cell is a gap wherever it stands."""
    return cell.lower() in ALWAYS or cell in further


def is_gap_among_numbers(cell: str) -> bool:
    """Whether a cell is a gap if the others are numbers, dates or times."""
    return cell.lower() in AMONG_OTHERS


def is_gap_among_words(cell: str, others: Collection[str]) -> bool:
    """Whether a sign is a gap: if all others are words. Beside "+", "-" is a category."""
    return cell in SIGNS and all(other in SIGNS or re.match(r"\w", other) for other in others)
