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
            return -np.inf
        self._next = step + self.every
        self.scores.append(float(self.monitor(target())))
        return self.scores[-1]

    def done(self):
        if not self.scores:
            return False
        return len(self.scores) - 1 - int(np.nanargmax(self.scores)) >= self.patience
