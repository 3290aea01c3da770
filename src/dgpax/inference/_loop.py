"""Steps, one compiled call after another, until something says stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ..distributed import any_of_all
from ..typing import PyTree, RandomKey
from ._base import AbstractEngine, Problem
from ._checkpoint import Checkpoints, Position
from ._stopping import AbstractStopping

MAX_REJECTIONS_IN_A_ROW = 10
MANY_THREADS_PAY_FROM = 2000
"""Matrices of this size are factorised faster by several BLAS threads; below it, idle ones take cores from XLA."""


@dataclass(frozen=True)
class Progress:
    """What a callback sees after every call of the compiled step."""

    step: int
    objective: float
    seconds: float
    target: Callable[[], PyTree]
    """The target at its current values: the model, or (model, posterior)."""


@dataclass(frozen=True)
class Limits:
    """What ends a fit before its steps are used up."""

    started: float
    max_seconds: float | None
    stopping: AbstractStopping
    callbacks: Sequence[Callable[[Progress], bool | None]]
    show: Callable[[int, float], None]


@dataclass
class Run:
    """The record of a fit while it goes on."""

    step: int = 0
    rejected: int = 0
    rejected_in_a_row: int = 0
    jitter: float = 0.0
    history: list[float] = field(default_factory=list)
    stopped_because: str = ""
    converged: bool = False
    unfinished: bool = False
    interrupted: bool = False
    resumed_at: tuple[int, ...] = ()

    @property
    def gave_up(self) -> bool:
        return self.rejected_in_a_row >= MAX_REJECTIONS_IN_A_ROW

    def record(self, infos, accepted: np.ndarray) -> None:
        """Count what one call of the compiled step did."""
        self.step += len(accepted)
        self.rejected += int(np.sum(~accepted))
        hits = np.flatnonzero(accepted)
        trailing = len(accepted) - 1 - int(hits[-1]) if len(hits) else self.rejected_in_a_row + len(accepted)
        self.rejected_in_a_row = trailing
        self.jitter = max(self.jitter, float(np.max(np.asarray(infos.jitter), where=accepted, initial=0.0)))
        self.history.extend(np.asarray(infos.objective)[accepted].tolist())

    def begin_stage(self) -> None:
        """What the last stage, or the last call before it resumed, ended with says nothing about the next one."""
        self.stopped_because, self.converged, self.unfinished = "", False, False

    def reason_to_stop(self, infos, progress: Progress, limits: Limits) -> str | None:
        if self.gave_up:
            self.unfinished = True
            return f"{self.rejected_in_a_row} steps in a row were not finite"
        if bool(infos.converged[-1]):
            self.converged = True
            return "it converged"
        if any([callback(progress) for callback in limits.callbacks]):
            return "a callback asked for it"
        if limits.stopping.done():
            return "the monitored score stopped improving"
        if limits.max_seconds is not None and progress.seconds > limits.max_seconds:
            self.unfinished = True
            return f"the time of {limits.max_seconds:g} s was up"
        return None

    def end_stage(self, reason: str | None, engine: AbstractEngine) -> None:
        """With a reason, or because all steps were taken."""
        self.unfinished = self.unfinished or (reason is None and engine.has_rule)
        limit = " before the objective was flat" if engine.has_rule else ""
        self.stopped_because = reason or f"all {engine.max_steps:,} steps were taken{limit}"


def suitable_blas_threads(largest_matrix: int) -> threadpool_limits:
    """A context in which BLAS, which factorises on CPUs, has one thread, or as many as it likes for large matrices."""
    return threadpool_limits(None if largest_matrix >= MANY_THREADS_PAY_FROM else 1, user_api="blas")


def train(
    run: Run, engine: AbstractEngine, problem: Problem, key: RandomKey, limits: Limits, checkpoints: Checkpoints
) -> PyTree:
    """Take steps until they are used up or there is a reason to stop; the target at the best state comes back.

    Ctrl-C is a reason too: it marks the run and loses nothing.
    """
    first = engine.begin(problem, key)
    start = Position(first, first, -np.inf, run.step + engine.max_steps)
    problem, position = checkpoints.enter(vars(run), problem, start)
    reason = position.ended_because
    if reason is None:
        run.begin_stage()
    try:
        while run.step < position.last_step and reason is None:
            end = end_of_call(run.step, position.last_step, limits.stopping.next_look())
            state, infos, accepted = engine.advance(problem, position.state, key, run.step, end)
            run.record(infos, accepted)
            progress = _progress(run, engine, problem, state, limits)
            position = position.moved(state, limits.stopping.score(run.step, progress.target))
            reason = run.reason_to_stop(infos, progress, limits)
            if any_of_all(reason is not None):
                reason = reason or "another process of this fit stopped"
            if run.converged or run.gave_up or limits.stopping.done():
                position = position._replace(ended_because=reason)
            checkpoints.keep(vars(run), problem, position, now=reason is not None or run.step == position.last_step)
        run.end_stage(reason, engine)
    except KeyboardInterrupt:
        run.interrupted = run.unfinished = True
        run.stopped_because = "it was interrupted; the best state so far was kept"
    return engine.target(problem, position.best)


def end_of_call(step: int, last_step: int, *looks: int | None) -> int:
    """The last step, or the next one before it after which something wants to look."""
    return min([last_step, *(look for look in looks if look is not None and look > step)])


def _progress(run: Run, engine, problem, state: Any, limits: Limits) -> Progress:
    latest = run.history[-1] if run.history else float("nan")
    limits.show(run.step, latest)
    return Progress(run.step, latest, time.perf_counter() - limits.started, lambda: engine.target(problem, state))
