"""What happened during a fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)  # compared as itself: a fit can then be given to a compiled function
class FitReport:
    """Numbers to trust or distrust a fit by. `print` it."""

    inference: str
    engine: str
    num_rows: int
    num_parameters: int
    steps: int
    seconds: float
    objective_start: float
    objective_end: float
    stopped_because: str
    converged: bool
    unfinished: bool
    """Whether its limits ended it: the rule that says when it is done was not met, or it was interrupted."""
    interrupted: bool
    resumed_at: tuple[int, ...]
    """The steps at which it went on from a checkpoint."""
    rejected_steps: int
    largest_jitter: float
    clipped_variances: int
    constant_columns: tuple[str, ...]
    notes: tuple[str, ...]
    history: np.ndarray = field(repr=False)
    """The objective at every step that was accepted."""
    details: dict[str, Any] = field(default_factory=dict)
    """What the method has to say besides, such as how well its chains mix."""

    @property
    def advice(self) -> str:
        """What to make of a fit that its limits ended; empty if it is done."""
        if not self.unfinished:
            return ""
        tenth = max(1, len(self.history) // 10)
        before, last = self.history[-2 * tenth : -tenth], self.history[-tenth:]
        gain = np.mean(last) - np.mean(before) if len(before) else 0.0
        return (
            f"It isn't finished: {self.stopped_because}. Over the last tenth of its steps the objective changed by "
            f"{gain:+.3g}. Give it more steps or more time, or go on from where it ended."
        )

    @property
    def shown_details(self) -> dict[str, str]:
        """The details in words."""
        return {name.replace("_", " "): _show(value) for name, value in self.details.items()}

    def __str__(self) -> str:
        own = {name: value for name, value in vars(self).items() if name not in ("history", "notes", "details")}
        rows = {name.replace("_", " "): _show(value) for name, value in own.items()} | self.shown_details
        lines = [f"{name:<20} {value}" for name, value in rows.items()]
        notes = [self.advice, *self.notes] if self.advice else self.notes
        return "\n".join([*lines, *(f"note: {note}" for note in notes)])


def _show(value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, np.ndarray):
        return f"{value[0]:.4g} → {value[-1]:.4g}" if len(value) else "none"
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value) or "none"
    return str(value)
