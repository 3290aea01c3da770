"""The exact median of a column of any length, in memory that doesn't depend on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

BITS = 16
SIGN = np.uint64(1 << 63)


def exact_median(chunks: Callable[[], Iterator[np.ndarray]]) -> float:
    """Of all numbers that aren't NaN, as `np.median`; `chunks` begins anew at every call.

    A digit at a time: counts of the leading 16 bits say with which bits the median begins, those of the next 16 bits
    among these numbers how it goes on.
    """
    count = sum(int(np.sum(~np.isnan(chunk))) for chunk in chunks())
    low, high = (_nth(chunks, place) for place in ((count - 1) // 2, count // 2))
    return float(np.mean([low, high]))


def _nth(chunks: Callable[[], Iterator[np.ndarray]], place: int) -> float:
    """The number that has `place` numbers before it in ascending order."""
    prefix = np.uint64(0)
    for shift in range(64 - BITS, -1, -BITS):
        counts = np.zeros(1 << BITS, np.int64)
        for chunk in chunks():
            words = _ordered(chunk[~np.isnan(chunk)].astype(np.float64))
            if shift + BITS < 64:
                words = words[words >> np.uint64(shift + BITS) == prefix]
            digits = (words >> np.uint64(shift)) & np.uint64((1 << BITS) - 1)
            counts += np.bincount(digits.astype(np.int64), minlength=1 << BITS)
        before = np.cumsum(counts)
        digit = int(np.searchsorted(before, place, side="right"))
        place -= int(before[digit - 1]) if digit else 0
        prefix = (prefix << np.uint64(BITS)) | np.uint64(digit)
    return _number(prefix)


def _ordered(values: np.ndarray) -> np.ndarray:
    """Whole numbers in the order of these floats."""
    words = values.view(np.uint64)
    return np.where(words & SIGN, ~words, words | SIGN)


def _number(word: np.uint64) -> float:
    return float(np.asarray(word ^ SIGN if word & SIGN else ~word, np.uint64).view(np.float64))
