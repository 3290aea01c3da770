"""The loop of `fit` for objectives of one's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import jax.random as jr

from ..typing import PyTree
from ._base import AbstractEngine, AbstractObjective, Problem
from ._checkpoint import Checkpoints
from ._loop import Limits, Progress, Run, suitable_blas_threads, train
from ._progress import progress_bar
from ._stopping import AbstractStopping, NeverStop


def maximise(
    objective: AbstractObjective,
    target: PyTree,
    data: PyTree,
    engine: AbstractEngine,
    *,
    seed: int = 0,
    max_seconds: float | None = None,
    stopping: AbstractStopping | None = None,
    callbacks: Sequence[Callable[[Progress], bool | None]] = (),
    progress: bool | None = None,
) -> tuple[PyTree, Run]:
    """Train the parameters of any target, and tell what happened.

    Steps that aren't finite are rejected, and Ctrl-C keeps what there is, as in `fit`, whose options these are. After
    too many rejected steps in a row the record's `gave_up` is true.
    """
    run, stopping = Run(), stopping or NeverStop()
    with suitable_blas_threads(0), progress_bar(engine.max_steps, progress) as show:
        limits = Limits(time.perf_counter(), max_seconds, stopping, callbacks, show)
        nowhere = Checkpoints(None, 0.0, stopping)
        return train(run, engine, Problem(objective, target, data), jr.key(seed), limits, nowhere), run
