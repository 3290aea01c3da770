"""The progress bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text


class _Rate(ProgressColumn):
    def render(self, task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:.3g} steps/s")


@contextmanager
def progress_bar(total: int, show: bool | None) -> Iterator[Callable[[int, float], None]]:
    """A function of (step, objective) that updates a bar with the objective, the rate and the time left."""
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda step, objective: None
        return
    columns = (
        TextColumn("fit"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("objective {task.fields[objective]:.5g}"),
        _Rate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=False) as bar:
        task = bar.add_task("fit", total=total, objective=float("nan"))
        yield lambda step, objective: bar.update(task, completed=step, objective=objective)
