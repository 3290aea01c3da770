"""A thing that was looked at before predictions are called honest."""

from __future__ import annotations

from typing import NamedTuple

GOOD, BAD, OPEN = "good", "bad", "open"


class Check(NamedTuple):
    """What was looked at, what was found, what chance does to a calibrated model, and whether that is "good", "bad" or
    "open", as there are too few rows. `word` is what a bad one is called."""

    what: str
    found: str
    chance: str
    state: str
    word: str = ""
