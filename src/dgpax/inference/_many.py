"""Many fits in one program: splits, seeds, restarts, grids of starting values."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..data import AbstractFeed, Dataset, InMemory, as_feed
from ..errors import DgpaxWarning, InputError
from ..model import DeepGP
from ..programs import compiled
from ..typing import Array, Bool, PyTree
from ._arguments import as_seed, check_seconds
from ._base import AbstractEngine, AbstractMethod, Problem, keep_where, take_steps
from ._fit import Task, complaint, conclude
from ._loop import Limits, Progress, Run, end_of_call, suitable_blas_threads
from ._methods import as_method
from ._progress import progress_bar
from ._stopping import AbstractStopping, NeverStop


def fit_many(
    models: Sequence[DeepGP],
    datasets: Sequence[Dataset | AbstractFeed],
    inference: str | AbstractMethod | Sequence[AbstractMethod] = "variational",
    *,
    engine: AbstractEngine | None = None,
    seeds: Sequence[int] | None = None,
    max_seconds: float | None = None,
    stopping: Callable[[int], AbstractStopping] | None = None,
    progress: bool | None = None,
) -> list[Any]:
    """`fit` for models and data of equal shapes, all at once: on a GPU twenty small models cost little more than one.

    `stopping` makes the rule of the i-th fit; a fit that has ended stays where it is while the others go on. `seeds`
    are 0 for all unless given. `inference` may have a method for every fit, such as `Variational(q)` with posteriors q
    to go on from. A fit whose steps aren't finite ends with a warning, not an error. Everything else is as
    in `fit`, and so are the results, up to rounding.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> halves = [dgpax.dataset(x[i::2], data.y[i::2]) for i in range(2)]
    >>> models = [dgpax.deep_gp(half, 2, 5) for half in halves]
    >>> engine = dgpax.inference.NaturalGradient(max_steps=20)
    >>> fits = dgpax.fit_many(models, halves, engine=engine, progress=False)
    >>> [fitted.report.num_rows for fitted in fits]
    [10, 10]
    """
    started = time.perf_counter()
    shared = isinstance(inference, str | AbstractMethod)
    methods = [as_method(inference)] * len(models) if shared else list(inference)
    seeds = [0] * len(models) if seeds is None else [as_seed(seed) for seed in seeds]
    check_seconds("fit_many(max_seconds=...)", max_seconds)
    if not len(models) == len(datasets) == len(seeds) == len(methods) or not models:
        raise InputError(
            f"fit_many needs as many models as datasets, seeds and methods, at least one; got {len(models)}, "
            f"{len(datasets)}, {len(seeds)} and {len(methods)}. Repeat one that is shared: "
            f"[data] * {max(len(models), 1)}."
        )
    method = methods[0]
    engine = method.default_engine() if engine is None else engine
    feeds = [as_feed(data) for data in datasets]
    if not all(isinstance(feed, InMemory) for feed in feeds):
        raise InputError("fit_many is for data in memory; fit streams one by one.")
    given = zip(methods, [engine] * len(models), models, feeds, seeds, strict=True)
    tasks = [Task.of(*one) for one in given]
    targets, to_do = [task.target for task in tasks], method.stages(tasks[0].target)
    group = _Group(len(tasks), None if stopping is None else [stopping(index) for index in range(len(tasks))])
    threads = suitable_blas_threads(method.largest_matrix(models[0], feeds[0].head))
    early = engine.has_rule or stopping is not None
    deadline = None if max_seconds is None else started + max_seconds
    with threads, progress_bar(engine.max_steps * len(to_do), progress, early, deadline) as bar:
        limits = Limits(started, max_seconds, NeverStop(), (), bar.show)
        for stage, held in enumerate(to_do):
            bar.compiling()
            problems = []
            for own, target, task in zip(methods, targets, tasks, strict=True):
                starts = own.starts(target, task.scaled) if stage == 0 else ()
                problems.append(Problem(own, target, task.prepared, held, starts))
            targets = group.train(engine, problems, seeds, limits)
    ends = zip(tasks, group.runs, methods, targets, strict=True)
    fits: list[Any] = [conclude(task, run, own, engine, target, started) for task, run, own, target in ends]
    for index, (run, fitted) in enumerate(zip(group.runs, fits, strict=True)):
        if run.gave_up:
            warnings.warn(f"Fit {index}: {complaint(run, fitted)}", DgpaxWarning, stacklevel=2)
    return fits


class _Group:
    """The records of fits that go on together, and which of them have ended."""

    def __init__(self, size: int, stopping: list[AbstractStopping] | None):
        self.runs = [Run() for _ in range(size)]
        self.stopping = [NeverStop() for _ in range(size)] if stopping is None else stopping
        self.best_scores = np.full(size, -np.inf)

    def train(self, engine: AbstractEngine, problems: list[Problem], seeds: list[int], limits: Limits) -> list[PyTree]:
        """Take steps with all until each has a reason to stop; their targets at their best states."""
        problem = _stack(problems)
        keys = jnp.stack([jr.key(seed) for seed in seeds])
        state = best = _init(engine, problem, keys)
        active = np.ones(len(problems), bool)
        for run in self.runs:
            run.begin_stage()
        start = max(run.step for run in self.runs)
        step, last_step = start, start + engine.max_steps
        while step < last_step and active.any():
            looks = [self.stopping[index].next_look() for index in np.flatnonzero(active).tolist()]
            end = end_of_call(step, last_step, *looks)
            state, told = _steps(engine, problem, state, keys, jnp.asarray(active), jnp.asarray(step), jnp.asarray(end))
            infos, accepted = jax.tree.map(lambda leaf, left=end - step: np.asarray(leaf)[:, :left], told)
            step += accepted.shape[1]
            improved = np.zeros(len(problems), bool)
            for index in np.flatnonzero(active).tolist():
                one = jax.tree.map(lambda leaf, index=index: leaf[index], infos)
                self.runs[index].record(one, accepted[index])
                target = _lazily(engine, problems[index], state, index)
                improved[index] = self._improved(index, step, target)
                active[index] = not self._ended(index, one, target, engine, limits)
            best = _keep(jnp.asarray(improved), state, best)
            limits.show(step, float(np.mean([run.history[-1] if run.history else np.nan for run in self.runs])))
        for index in np.flatnonzero(active).tolist():
            self.runs[index].end_stage(None, engine)
        return [_lazily(engine, problem, best, index)() for index, problem in enumerate(problems)]

    def _improved(self, index: int, step: int, target: Callable[[], PyTree]) -> bool:
        score = self.stopping[index].score(step, target)
        if score is None:
            return True
        better = score > self.best_scores[index]
        self.best_scores[index] = max(score, self.best_scores[index])
        return bool(better)

    def _ended(self, index: int, infos, target: Callable[[], PyTree], engine: AbstractEngine, limits: Limits) -> bool:
        run = self.runs[index]
        latest = run.history[-1] if run.history else float("nan")
        seconds = time.perf_counter() - limits.started
        own = Limits(limits.started, limits.max_seconds, self.stopping[index], (), limits.show)
        reason = run.reason_to_stop(infos, Progress(run.step, latest, seconds, target), own)
        if reason is not None:
            run.end_stage(reason, engine)
        return reason is not None


def _stack(problems: list[Problem]) -> Problem:
    """One problem whose arrays have a leading axis, if all have the same structure and shapes."""
    parts = [eqx.partition(problem, eqx.is_array) for problem in problems]
    for index, (arrays, _) in enumerate(parts):
        ours, first = (jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree) for tree in (arrays, parts[0][0]))
        if jax.tree.structure(arrays) != jax.tree.structure(parts[0][0]) or jax.tree.leaves(ours) != jax.tree.leaves(
            first
        ):
            raise InputError(
                f"Fits that run together need the same layers and equally many rows, columns and inducing points; "
                f"fit {index} differs from fit 0."
            )
    arrays = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(arrays for arrays, _ in parts))
    return eqx.combine(arrays, parts[0][1])


@compiled
def _init(engine: AbstractEngine, problem: Problem, keys):
    return eqx.filter_vmap(engine.init)(problem, keys)


@compiled
def _steps(engine: AbstractEngine, problem: Problem, state, keys, active: Bool[Array, " K"], start, end):
    """Steps of all fits; those that have ended stay as they are."""
    advance = eqx.filter_vmap(lambda p, s, k: take_steps(engine, p, None, s, k, start, end))
    new, told = advance(problem, state, keys)
    return _keep(active, new, state), told


@compiled
def _keep(chosen: Bool[Array, " K"], yes: PyTree, no: PyTree) -> PyTree:
    return jax.vmap(keep_where)(chosen, yes, no)


def _lazily(engine: AbstractEngine, problem: Problem, states: PyTree, index: int) -> Callable[[], PyTree]:
    """The target of one of the fits, when it is asked for."""
    return lambda: problem.at(engine.result(jax.tree.map(lambda leaf: leaf[index], states)))
