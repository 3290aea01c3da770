"""The progress bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from html import escape

BETWEEN = 0.2
"""Seconds between two pictures of a bar in a notebook."""


class Bar:
    """What is said of a fit: that it compiles, as its first call does, then its steps and how long they may take.

    Where a rule or something else may end the fit early, the time that is left is one "at most"; `deadline` bounds it.
    """

    def __init__(self, total: int, tell: Callable[..., None], may_end_early: bool, deadline: float | None):
        self.total, self.tell, self.may_end_early, self.deadline = total, tell, may_end_early, deadline
        self.first: tuple[int, float] | None = None
        self.steps = ""

    def compiling(self) -> None:
        """The next call compiles, and its time says nothing about the steps after it."""
        self.first = None
        self.tell(description="compiling", total=None, told=self.steps)

    def show(self, step: int, objective: float) -> None:
        """After a call that ended with this step."""
        now = time.perf_counter()
        first, since = self.first = self.first or (step, now)
        self.steps = f"{step}/{self.total} objective {objective:.5g}"
        told = self.steps
        if step > first and step < self.total:
            rate = (step - first) / (now - since)
            left = (self.total - step) / rate
            left = left if self.deadline is None else max(0.0, min(left, self.deadline - now))
            told += f" {rate:.3g} steps/s, {timedelta(seconds=round(left))} left{' at most' * self.may_end_early}"
        self.tell(description="fit", completed=step, total=self.total, told=told)


class Line:
    """A bar in a notebook, which is drawn anew at most five times a second and at the end."""

    def __init__(self):
        from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

        self.html, self.shown = HTML, 0.0
        self.handle = display(HTML(""), display_id=True)

    def __call__(self, description: str, told: str, total: int | None = None, completed: int | None = None) -> None:
        now = time.perf_counter()
        if now - self.shown < BETWEEN and completed != total:
            return
        self.shown = now
        place = "" if total is None else f' value="{completed}" max="{total}"'
        self.handle.update(self.html(f"<progress{place}></progress> {escape(description)} {escape(told)}"))


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this."""
    ipython = sys.modules.get("IPython")
    return hasattr(ipython.get_ipython(), "kernel") if ipython else False


@contextmanager
def progress_bar(
    total: int, show: bool | None, may_end_early: bool = False, deadline: float | None = None
) -> Iterator[Bar]:
    """A bar, or one that nobody sees; `show` None means: if the terminal can, or in a notebook."""
    notebook = in_notebook()
    if not (sys.stderr.isatty() or notebook if show is None else show):
        yield Bar(total, lambda **what: None, may_end_early, deadline)
        return
    if notebook:
        yield Bar(total, Line(), may_end_early, deadline)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=False) as progress:
        task = progress.add_task("fit", total=None, told="")
        bar = Bar(total, lambda **what: progress.update(task, **what), may_end_early, deadline)
        yield bar
        progress.update(task, description="fit", told=bar.steps)
