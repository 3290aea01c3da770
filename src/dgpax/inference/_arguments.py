"""What `fit` takes besides model and data, checked before anything is computed."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from ..errors import InputError

LARGEST_SEED = 2**63


def as_seed(seed: Any) -> int:
    """A whole number of at most 64 bits, of whatever type."""
    if not isinstance(seed, Integral) or not -LARGEST_SEED <= int(seed) < LARGEST_SEED:
        raise InputError(f"A seed is a whole number from -2**63 to 2**63 - 1; got {seed!r:.100}.")
    return int(seed)


def check_seconds(name: str, seconds: Any) -> None:
    """None, or a time of 0 or more."""
    if seconds is not None and not (isinstance(seconds, Real) and float(seconds) >= 0):
        raise InputError(f"{name} is a time in seconds, 0 or more, or None for no limit; got {seconds!r:.100}.")


def check_count(name: str, count: Any, least: int) -> None:
    """A whole number."""
    if not isinstance(count, Integral) or isinstance(count, bool) or count < least:
        raise InputError(f"{name} must be at least {least} and whole; got {count!r:.100}.")
