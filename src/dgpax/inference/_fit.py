"""`fit`: from a model and data to a fitted model."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

import jax
import jax.random as jr
import numpy as np

from ..data import AbstractFeed, Dataset, InMemory, as_feed, constant_columns
from ..distributed import leads
from ..errors import DgpaxWarning, InputError, NumericalError
from ..fits import AbstractFit, Fit, FitReport
from ..model import DeepGP
from ..parameters import cast, find, freeze
from ..posteriors import RowLatents
from ..programs import compiled
from ..typing import Array, Float, PyTree, RandomKey
from ._arguments import as_seed, check_seconds
from ._base import AbstractEngine, AbstractMethod, Problem
from ._checkpoint import checkpoints
from ._loop import Limits, Progress, Run, suitable_blas_threads, train
from ._methods import as_method
from ._mismatch import explaining_shapes
from ._notes import notes_about
from ._outcome import Outcome
from ._progress import progress_bar
from ._stopping import AbstractStopping, NeverStop

Callback = Callable[[Progress], bool | None]


@overload
def fit(
    model: DeepGP, data: Dataset | AbstractFeed, inference: str | AbstractMethod = "exact", *,
    engine: AbstractEngine | None = None, seed: int = 0, max_seconds: float | None = None,
    stopping: AbstractStopping | None = None, callbacks: Sequence[Callback] = (), progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 30.0,
) -> Fit: ...  # fmt: skip
@overload
def fit(
    model: Any, data: Dataset | AbstractFeed, inference: str | AbstractMethod = "exact", *,
    engine: AbstractEngine | None = None, seed: int = 0, max_seconds: float | None = None,
    stopping: AbstractStopping | None = None, callbacks: Sequence[Callback] = (), progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 30.0,
) -> Any: ...  # fmt: skip
def fit(
    model: Any,
    data: Dataset | AbstractFeed,
    inference: str | AbstractMethod = "exact",
    *,
    engine: AbstractEngine | None = None,
    seed: int = 0,
    max_seconds: float | None = None,
    stopping: AbstractStopping | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
) -> AbstractFit:
    """Train a model on data in raw units and infer its posterior.

    The model is a DeepGP, or what the method takes in its place, as STRIDE an architecture; what comes back is a Fit,
    or the method's own.

    `data` is a Dataset, of which every step sees all rows, or a feed that gives it a batch of them:
    `dgpax.data.InMemory(data, batch_size=1000)`.

    `inference` is a word ("exact", "sparse") or a method with settings, `Sparse(chunk_rows=10_000)`. `engine`
    takes the steps; each method has a default. A callback that returns True ends the fit. Ctrl-C ends it too
    and keeps the best state so far. A step that isn't finite never gets into the parameters. `progress` shows a
    bar; None means: if the terminal can.

    `max_seconds` counts from this call on, compiling included. The clock is read after every call of the compiled
    steps, the first time when they are compiled and some are taken, so that a fit may take longer than a short limit;
    what makes the posterior of the trained parameters follows it.

    `checkpoint` is a folder of this fit's own, into which it writes where it stands every `checkpoint_every` seconds.
    The same call, after the process was killed, goes on from there to the same result, bit for bit on the same
    machine; `report.resumed_at` says from which steps. Time that was used before counts, and callbacks begin anew. With
    it SIGUSR1 writes a checkpoint, and SIGTERM writes one and ends the process.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    >>> fitted.report.converged
    True
    >>> fitted = dgpax.fit(dgpax.sparse_gp_regression(data, 5), data, "sparse", max_seconds=5.0, progress=False)
    """
    method = as_method(inference)
    engine = method.default_engine() if engine is None else engine
    seed, began = as_seed(seed), time.perf_counter()
    check_seconds("fit(max_seconds=...)", max_seconds)
    task = Task.of(method, engine, model, as_feed(data), seed)
    target, to_do = task.target, method.stages(task.target)
    run = Run() if to_do else Run(stopped_because="there was nothing to train", converged=True)
    stopping = stopping or NeverStop()
    parts = {"model": model, "data": task.feed.identity, "inference": method, "engine": engine, "seed": seed}
    kept = checkpoints(checkpoint, checkpoint_every, stopping, began, **parts)
    shapes = explaining_shapes(method, target, task.prepared.head)
    threads = suitable_blas_threads(method.largest_matrix(model, task.feed.head))
    early = engine.has_rule or not isinstance(stopping, NeverStop)
    with kept as saved, shapes, threads:
        started = began - saved.seconds
        deadline = None if max_seconds is None else started + max_seconds
        with progress_bar(engine.max_steps * len(to_do), progress if leads() else False, early, deadline) as bar:
            limits = Limits(started, max_seconds, stopping, callbacks, bar.show)
            for stage in range(saved.stage, len(to_do)):
                saved.stage = stage
                bar.compiling()
                starts = method.starts(target, task.scaled) if stage == 0 else ()
                problem = Problem(method, target, task.prepared, to_do[stage], starts)
                target = train(run, engine, problem, jr.key(seed), limits, saved)
                if run.interrupted or run.gave_up:
                    break
    result = conclude(task, run, method, engine, target, started)
    if run.gave_up:
        raise complaint(run, result)
    return result


class Task(NamedTuple):
    """A model and its data, checked, and what is trained on them.

    `scaled` is the head of the feed as the method takes it, `prepared` the feed as the objective reads it.
    """

    model: Any
    feed: AbstractFeed
    scaled: Dataset
    target: PyTree
    prepared: AbstractFeed
    seed: int

    @classmethod
    def of(cls, method: AbstractMethod, engine: AbstractEngine, model: Any, feed: AbstractFeed, seed: int) -> Task:
        """With a single row, the model's parameters stay as they are."""
        head = feed.head
        scaled = method.check(model, head)
        _refuse_batches(method, engine, feed)
        prior = freeze(model) if feed.num_rows == 1 else model
        target = method.target(cast(prior, head.x.dtype), scaled)
        _refuse_rows_of_streams(target, feed)
        scaling = model.scaling if isinstance(model, DeepGP) else None
        return cls(model, feed, scaled, target, feed.prepared(method.prepare(target, scaled), scaling), seed)


def _refuse_batches(method: AbstractMethod, engine: AbstractEngine, feed: AbstractFeed) -> None:
    """An error where a step can't do with some of the rows."""
    if not feed.in_batches or not (method.needs_all_rows or engine.needs_all_rows):
        return
    who = type(method if method.needs_all_rows else engine).__name__
    raise InputError(
        f"{who} needs all {feed.num_rows:,} rows in every step, and the data come in batches. Give it the data "
        'themselves if they are in memory, without batch_size; or use inference="variational" with Settling(), '
        "NaturalGradient() or Gradient()."
    )


def _refuse_rows_of_streams(target: PyTree, feed: AbstractFeed) -> None:
    """An error where every row would have numbers of its own and there are too many to hold."""
    nodes = jax.tree.leaves(target, is_leaf=lambda node: isinstance(node, RowLatents))
    if not isinstance(feed, InMemory) and any(isinstance(node, RowLatents) for node in nodes):
        raise InputError(
            "Latent variables with numbers of their own for every row need rows in memory, and these are a stream. Use "
            'Variational(latents="encoder"), which gives them from the row.'
        )


def conclude(
    task: Task, run: Run, method: AbstractMethod, engine: AbstractEngine, target: PyTree, started: float
) -> AbstractFit:
    """The fit that a trained target makes, with its report."""
    outcome = method.outcome(target, task.model, task.feed.head, task.scaled)
    if not run.history:
        run.history = [float(_objective(method, target, task.prepared.head, jr.key(task.seed)))]
    run.jitter = max(run.jitter, outcome.largest_jitter)
    return outcome.make(_report(run, method, engine, target, outcome, task.feed, started))


@compiled
def _objective(method: AbstractMethod, target: PyTree, prepared: PyTree, key: RandomKey) -> Float[Array, ""]:
    return method.terms(target, prepared, key).total


def _report(run: Run, method, engine, target, outcome: Outcome, feed: AbstractFeed, started: float) -> FitReport:
    model = outcome.model
    head = feed.head
    columns = () if model.scaling is None else constant_columns(model.scaling, head.input_names)
    notes = notes_about(model, head.counted(), columns) + outcome.notes
    for note in notes:
        warnings.warn(note, DgpaxWarning, stacklevel=3)
    return FitReport(
        inference=type(method).__name__,
        engine=type(engine).__name__,
        num_rows=feed.num_rows,
        num_parameters=sum(p.raw.size for p in find(target).values() if p.trainable),
        steps=run.step,
        seconds=time.perf_counter() - started,
        objective_start=run.history[0],
        objective_end=run.history[-1],
        stopped_because=run.stopped_because,
        converged=run.converged,
        unfinished=run.unfinished,
        interrupted=run.interrupted,
        resumed_at=run.resumed_at,
        rejected_steps=run.rejected,
        largest_jitter=run.jitter,
        clipped_variances=outcome.clipped_variances,
        constant_columns=columns,
        notes=notes,
        history=np.asarray(run.history),
        details=outcome.details,
    )


def complaint(run: Run, result: AbstractFit) -> NumericalError:
    error = NumericalError(
        f"{run.rejected_in_a_row} steps in a row were not finite (largest jitter {run.jitter:.1e}), so the fit stopped "
        f"after step {run.step}. What it had is in this error's `fit`. Lower the learning rate, merge inducing "
        "points that nearly coincide, or raise the noise variance."
    )
    error.fit = result
    return error
