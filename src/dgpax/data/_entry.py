"""A row of the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ._layouts import Arrays, Contents

CC_BY = "CC BY 4.0"
NOT_STATED = "not stated"


@dataclass(frozen=True)
class Entry:
    """A dataset: what it is, where it comes from, and the SHA-256 of its files."""

    name: str
    num_rows: int
    task: str
    num_splits: int
    input_names: tuple[str, ...]
    output_name: str
    licence: str
    citation: str
    source: str
    layout: Callable[[Arrays], Contents]
    files: dict[str, str]
    shipped: bool = False


def words(text: str) -> tuple[str, ...]:
    """Names written one after the other."""
    return tuple(text.split())
