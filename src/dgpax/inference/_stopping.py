"""When to stop early, and which state to keep."""

import abc
from collections.abc import Callable

import numpy as np

from ..errors import InputError
from ..typing import PyTree


class AbstractStopping(abc.ABC):
    """Watches a fit. Mutable, for one fit.

    What it remembers in attributes that are numbers, text, arrays, or tuples, lists and dictionaries of these, is kept
    in checkpoints and comes back when a fit is resumed.
    """

    @abc.abstractmethod
    def score(self, step: int, target: Callable[[], PyTree]) -> float | None:
        """The score of the current state, higher is better; None when it isn't looked at."""

    @abc.abstractmethod
    def done(self) -> bool:
        """Whether to stop."""

    def next_look(self) -> int | None:
        """The step after which it wants to look; None if any will do."""
        return None


class NeverStop(AbstractStopping):
    """Takes all steps and keeps the last state."""

    def score(self, step, target):
        return None

    def done(self):
        return False


class StopWhenStale(AbstractStopping):
    """Stops when a score, looked at every `every` steps, hasn't improved for `patience` looks.

    `monitor` maps the target (the model, or model and posterior) to a number, higher is better: a log density
    on held-out rows, say. The best state is restored.
    """

    def __init__(self, monitor: Callable[[PyTree], float], *, every: int = 50, patience: int = 10):
        if every < 1 or patience < 1:
            raise InputError(f"StopWhenStale needs every >= 1 and patience >= 1; got {every}, {patience}.")
        self.monitor, self.every, self.patience = monitor, every, patience
        self.scores: list[float] = []
        self._next = every

    def score(self, step, target):
        if step < self._next:
            return -np.inf if self.scores else None
        self._next = step + self.every
        self.scores.append(float(self.monitor(target())))
        return self.scores[-1]

    def next_look(self):
        return self._next

    def done(self):
        if not self.scores:
            return False
        return len(self.scores) - 1 - int(np.nanargmax(self.scores)) >= self.patience


class StopWhenFalling(AbstractStopping):
    """The rule of [STAR, section 4.1]: stops when a smoothed score has fallen over several strips of steps in a row.

    `monitor` is looked at every `every` steps and averaged over the last `window` looks. After `earliest` steps, the
    fit ends when this average fell in each of the last `num_strips` strips of `looks_per_strip` looks. The last state
    is kept, not the best.
    """

    def __init__(
        self,
        monitor: Callable[[PyTree], float],
        *,
        every: int = 10,
        window: int = 50,
        looks_per_strip: int = 5,
        num_strips: int = 5,
        earliest: int = 5_000,
    ):
        if min(every, window, looks_per_strip, num_strips) < 1:
            raise InputError(
                "StopWhenFalling needs every, window, looks_per_strip and num_strips >= 1; "
                f"got {every}, {window}, {looks_per_strip}, {num_strips}."
            )
        self.monitor, self.every, self.window = monitor, every, window
        self.looks_per_strip, self.num_strips, self.earliest = looks_per_strip, num_strips, earliest
        self.scores: list[float] = []
        self._next, self._step = every, 0

    def score(self, step, target):
        self._step = step
        if step >= self._next:
            self._next = step + self.every
            self.scores.append(float(self.monitor(target())))
        return None

    def next_look(self):
        return self._next

    def done(self):
        if self._step <= self.earliest or len(self.scores) <= self.num_strips * self.looks_per_strip:
            return False
        ends = len(self.scores) - self.looks_per_strip * np.arange(self.num_strips + 1)
        newest_first = [np.mean(self.scores[max(0, end - self.window) : end]) for end in ends]
        return bool(np.all(np.diff(newest_first) > 0))
