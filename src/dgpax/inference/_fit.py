"""`fit`: from a model and data to a fitted model."""

from __future__ import annotations

import dataclasses
import os
import time
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..conditional import unclipped_residual
from ..data import Dataset, constant_columns
from ..errors import DgpaxWarning, InputError, NumericalError
from ..fits import Fit, FitReport
from ..layers import AbstractLayer, GPLayer, last_gp
from ..model import DeepGP
from ..parameters import cast, find, freeze, matches
from ..posteriors import AbstractCarry, AbstractPosterior
from ..typing import Array, Float, PyTree, RandomKey
from ._base import AbstractEngine, AbstractMethod, Problem
from ._checkpoint import Checkpoints
from ._loop import Limits, Progress, Run, suitable_blas_threads, train
from ._methods import as_method
from ._mismatch import explaining_shapes, refuse_mismatch
from ._notes import notes_about
from ._progress import progress_bar
from ._stopping import AbstractStopping, NeverStop

REPORT_ROWS = 2000


def fit(
    model: DeepGP,
    data: Dataset,
    inference: str | AbstractMethod = "exact",
    *,
    engine: AbstractEngine | None = None,
    seed: int = 0,
    max_seconds: float | None = None,
    stopping: AbstractStopping | None = None,
    callbacks: Sequence[Callable[[Progress], bool | None]] = (),
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
) -> Fit:
    """Train a model on data in raw units and infer its posterior.

    `inference` is a word ("exact", "sparse") or a method with settings, `Sparse(chunk_rows=10_000)`. `engine`
    takes the steps; each method has a default. A callback that returns True ends the fit. Ctrl-C ends it too
    and keeps the best state so far. A step that isn't finite never gets into the parameters. `progress` shows a
    bar; None means: if the terminal can.

    `checkpoint` is a folder of this fit's own, into which it writes where it stands every `checkpoint_every` seconds.
    The same call, after the process was killed, goes on from there to the same result, bit for bit on the same
    machine; `report.resumed_at` says from which steps. Time that was used before counts, and callbacks begin anew.

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
    task = Task.of(method, model, data, seed)
    target, to_do = task.target, stages(task.target, method.warm_up)
    run = Run() if to_do else Run(stopped_because="there was nothing to train", converged=True)
    stopping = stopping or NeverStop()
    parts = {"model": model, "data": data, "inference": method, "engine": engine, "seed": seed}
    checkpoints = Checkpoints(checkpoint, checkpoint_every, stopping, **parts)
    started = time.perf_counter() - checkpoints.seconds
    shapes = explaining_shapes(method, target, task.prepared)
    threads = suitable_blas_threads(method.largest_matrix(model, data))
    with shapes, threads, progress_bar(engine.max_steps * len(to_do), progress) as show:
        limits = Limits(started, max_seconds, stopping, callbacks, show)
        for stage in range(checkpoints.stage, len(to_do)):
            checkpoints.stage = stage
            problem = Problem(method, target, task.prepared, to_do[stage])
            target = train(run, engine, problem, jr.key(seed), limits, checkpoints)
            if run.interrupted or run.gave_up:
                break
    result = conclude(task, run, method, engine, target, started)
    if run.gave_up:
        raise complaint(run, result)
    return result


class Task(NamedTuple):
    """A model and its data, checked, and what is trained on them."""

    model: DeepGP
    data: Dataset
    scaled: Dataset
    target: PyTree
    prepared: PyTree
    seed: int

    @classmethod
    def of(cls, method: AbstractMethod, model: DeepGP, data: Dataset, seed: int) -> Task:
        """With a single row, the model's parameters stay as they are."""
        scaled = check(model, data)
        prior = freeze(model) if data.counted().num_rows == 1 else model
        target = method.target(cast(prior, data.x.dtype), scaled)
        return cls(model, data, scaled, target, method.prepare(target, scaled), seed)


def conclude(
    task: Task, run: Run, method: AbstractMethod, engine: AbstractEngine, target: PyTree, started: float
) -> Fit:
    """The fit that a trained target makes, with its report."""
    model, posterior, jitter, clipped = _finish(method, target, task.scaled)
    if not run.history:
        run.history = [float(_objective(method, target, task.prepared, jr.key(task.seed)))]
    run.jitter = max(run.jitter, float(jitter))
    report = _report(run, method, engine, target, model, int(clipped), task.data, started)
    return Fit(_values_of(model, task.model), posterior, report, task.data.num_inputs, task.data.input_names)


def stages(target: PyTree, warm_up: tuple[str, ...]) -> list[frozenset[str]]:
    """What is held: first some parameters, if there are any to hold and others to train; then none."""
    everything = {name for name, parameter in find(target).items() if parameter.trainable}
    held = frozenset(name for name in everything if any(matches(name, pattern) for pattern in warm_up))
    if not everything:
        return []
    if not held or held == everything:
        return [frozenset()]
    return [held, frozenset()]


def _values_of(trained: PyTree, like: PyTree) -> PyTree:
    """The values of one target in the structure (what is trainable) of the other."""
    return jax.tree.unflatten(jax.tree.structure(like), jax.tree.leaves(trained))


@eqx.filter_jit
def _finish(method: AbstractMethod, target: PyTree, data: Dataset):
    """The fitted model, its posterior, the largest jitter, and how many variances had to be clipped."""
    model, posterior = method.finish(target, data)
    carry = posterior.begin(model.layers)
    return model, posterior, carry.jitter(), _num_clipped(model.layers[0], posterior, carry, data.x[:REPORT_ROWS])


@eqx.filter_jit
def _objective(method: AbstractMethod, target: PyTree, prepared: PyTree, key: RandomKey) -> Float[Array, ""]:
    return method.terms(target, prepared, key).total


def _num_clipped(layer: AbstractLayer, posterior: AbstractPosterior, carry: AbstractCarry, x: Float[Array, "N D"]):
    """How many variances of the first layer rounding leaves below zero."""
    if not isinstance(layer, GPLayer):
        return jnp.zeros((), int)
    processes = layer.processes()
    rows = processes.rows(x)[:REPORT_ROWS]
    residual = unclipped_residual(processes.kernel, rows, posterior.inducing(0, layer, carry), carry.root(0))
    return jnp.sum(residual < 0)


def check(model: DeepGP, data: Dataset) -> Dataset:
    """The data in the model's units, or an error that says what doesn't fit.

    It has no names, so that data of the same shape share compiled programs.
    """
    if not isinstance(data, Dataset):
        raise InputError(f"fit(model, data) needs a Dataset; got {type(data).__name__}. Make one: dataset(x, y).")
    if data.num_rows == 0:
        raise InputError("Found a dataset with 0 sample(s) while a minimum of 1 is required.")
    wanted = model.likelihood.num_latents(data.num_outputs)
    last = last_gp(model.layers)
    if last.num_outputs != wanted:
        raise InputError(
            f"The data has {data.num_outputs} output(s), for which the likelihood needs {wanted} latent function(s), "
            f"but the last layer has {last.num_outputs}. Set GPLayer(num_outputs={wanted})."
        )
    if model.scaling is not None and model.scaling.x_mean.shape[0] != data.num_inputs:
        raise InputError(
            f"The model was made for {model.scaling.x_mean.shape[0]} input columns; the data has {data.num_inputs}."
        )
    model.likelihood.check_targets(np.asarray(data.y))
    scaled = model.to_model_units(dataclasses.replace(data, input_names=(), output_names=()))
    refuse_mismatch(model, scaled)
    return scaled


def _report(run: Run, method, engine, target, model, clipped: int, data: Dataset, started: float) -> FitReport:
    columns = () if model.scaling is None else constant_columns(model.scaling, data.input_names)
    counted = data.counted()
    notes = notes_about(model, counted, columns)
    for note in notes:
        warnings.warn(note, DgpaxWarning, stacklevel=3)
    return FitReport(
        inference=type(method).__name__,
        engine=type(engine).__name__,
        num_rows=counted.num_rows,
        num_parameters=sum(p.raw.size for p in find(target).values() if p.trainable),
        steps=run.step,
        seconds=time.perf_counter() - started,
        objective_start=run.history[0],
        objective_end=run.history[-1],
        stopped_because=run.stopped_because,
        converged=run.converged,
        interrupted=run.interrupted,
        resumed_at=run.resumed_at,
        rejected_steps=run.rejected,
        largest_jitter=run.jitter,
        clipped_variances=clipped,
        constant_columns=columns,
        notes=notes,
        history=np.asarray(run.history),
    )


def complaint(run: Run, result: Fit) -> NumericalError:
    error = NumericalError(
        f"{run.rejected_in_a_row} steps in a row were not finite (largest jitter {run.jitter:.1e}), so the fit stopped "
        f"after step {run.step}. What it had is in this error's `fit`. Lower the learning rate, merge inducing "
        "points that nearly coincide, or raise the noise variance."
    )
    error.fit = result
    return error
