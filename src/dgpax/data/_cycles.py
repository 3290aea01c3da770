"""What comes round in the dates of a time series: the time of day, the weekday, the season."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

TIME_OF_DAY, WEEKDAY, SEASON = "time of day", "weekday", "season"
DAYS_OF = {TIME_OF_DAY: 1.0, WEEKDAY: 7.0, SEASON: 365.2425}
"""How many days they take."""
FILLED = 0.6
"""The share of hours, days or months between the first and the last that must have values, as a time series has."""


class _Cycle(NamedTuple):
    """The units of which it is made, as whole numbers, how many of them make it, and how many rounds it takes at least
    to tell that it comes round."""

    unit: Callable[[np.ndarray], np.ndarray]
    length: int
    rounds: float


def _months(days: np.ndarray) -> np.ndarray:
    return np.floor(days).astype("datetime64[D]").astype("datetime64[M]").astype(float)


CYCLES = {
    TIME_OF_DAY: _Cycle(lambda days: np.floor(24.0 * days + 1e-6), 24, 3.0),
    WEEKDAY: _Cycle(np.floor, 7, 3.0),
    SEASON: _Cycle(_months, 12, 1.5),
}


def cycles_of(days: np.ndarray) -> tuple[str, ...]:
    """What may come round in these days since 1970: what they fill, and several times over."""
    return tuple(name for name, cycle in CYCLES.items() if len(days) and _comes_round(days, cycle))


def representatives(days: np.ndarray) -> np.ndarray:
    """Few of these days, of which `cycles_of` says the same."""
    units = np.stack([cycle.unit(days) for cycle in CYCLES.values()], axis=1)
    return days[np.unique(units, axis=0, return_index=True)[1]]


def on_circle(days: np.ndarray, cycle: str) -> np.ndarray:
    """The place on the circle, [N, 2]: a kernel of the distance on it is periodic."""
    angle = 2.0 * np.pi * days / DAYS_OF[cycle]
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _comes_round(days: np.ndarray, cycle: _Cycle) -> bool:
    """Whether most units are there, or as regularly as quarters among months and every third hour, all rounds long."""
    units = np.unique(cycle.unit(days))
    step, extent = np.min(np.diff(units), initial=np.inf), units[-1] - units[0]
    if step > cycle.length / 3 or extent < cycle.rounds * cycle.length:
        return False
    return bool(len(units) >= FILLED * (extent / step + 1.0))
