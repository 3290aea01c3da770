"""Checkpoints: where a fit stands, in a file, from which it goes on as if nothing had happened."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from ..distributed import leads, mesh, refuse_differences, wait_for_all
from ..errors import DgpaxWarning, InputError, ModelFileError
from ..storage import Names, fingerprint, is_plain, read, write
from ..typing import PyTree
from ._base import Problem
from ._lock import only_here
from ._signals import Asked, listening
from ._stopping import AbstractStopping

KIND = "dgpax checkpoint"
FILE = "checkpoint.dgpax"
LOG = logging.getLogger("dgpax")


class Position(NamedTuple):
    """What the next step of a stage needs, and the best state so far."""

    state: PyTree
    best: PyTree
    best_score: float
    last_step: int
    ended_because: str | None = None
    """Why there is no next step, although not all were taken."""

    def moved(self, state: PyTree, score: float | None) -> Position:
        """At the next state, which is the best so far if its score says so or there is none."""
        if score is not None and not score > self.best_score:
            return self._replace(state=state)
        return self._replace(state=state, best=state, best_score=self.best_score if score is None else score)


class Saved(NamedTuple):
    """What a file holds; `arrays` are the trained values at the stage's start, the state, and the best state."""

    identity: dict[str, str]
    stage: int
    seconds: float
    record: dict[str, Any]
    stopping: dict[str, Any]
    best_score: float
    last_step: int
    ended_because: str | None
    arrays: tuple[Any, ...]


NAMES = Names({"Saved": Saved})


@contextmanager
def checkpoints(
    folder: str | os.PathLike[str] | None, every: float, stopping: AbstractStopping, began: float, **parts: Any
) -> Iterator[Checkpoints]:
    """Those of one fit, while it goes on: its folder is locked, and signals are listened to."""
    if not every >= 0:
        raise InputError(f"fit(checkpoint_every=...) is a time in seconds; got {every}.")
    identity = {} if folder is None and mesh() is None else _identity(stopping, parts)
    refuse_differences(identity)
    if folder is None:
        yield Checkpoints(None, {}, None, every, stopping, began, Asked())
        return
    folder = _made(Path(folder))
    with only_here(folder) if leads() else nullcontext(), listening() as asked:
        saved = _find(folder, identity)
        wait_for_all("checkpoint read")
        yield Checkpoints(folder, identity, saved, every, stopping, began, asked)
    asked.obey()


class Checkpoints:
    """The latest checkpoint of one fit, in a folder. Without a folder nothing is kept. Mutable, for one fit.

    `identity` has a fingerprint of everything the fit depends on. Every draw is a function of (seed, step), so that the
    state of the engine is all that is needed to go on. Time counts from when the fit `began`.
    """

    def __init__(
        self,
        folder: Path | None,
        identity: dict[str, str],
        saved: Saved | None,
        every: float,
        stopping: AbstractStopping,
        began: float,
        asked: Asked,
    ):
        self.folder, self.identity, self.every, self.stopping = folder, identity, every, stopping
        self._saved, self._asked = saved, asked
        self.stage = 0 if saved is None else saved.stage
        self.seconds = 0.0 if saved is None else saved.seconds
        self._started, self._tried = began, time.perf_counter()
        self._step_written, self._failing = None, False

    def enter(self, record: dict[str, Any], problem: Problem, start: Position) -> tuple[Problem, Position]:
        """Where a stage begins: at its start, or where the checkpoint left it. `record` is brought up to date."""
        saved, self._saved = self._saved, None
        if saved is None:
            return problem, start
        trainable, state, best = _filled((problem.trainable(), start.state, start.best), saved.arrays)
        _refuse_another_record(saved.record, record)
        record.update(saved.record, history=saved.record["history"].tolist())
        record["resumed_at"] = (*record["resumed_at"], record["step"])
        vars(self.stopping).update(saved.stopping)
        LOG.info("Resumed the fit of %s at step %d, after %.0f s.", self.folder, record["step"], saved.seconds)
        problem = eqx.tree_at(lambda problem: problem.target, problem, problem.at(trainable))
        return problem, Position(state, best, saved.best_score, saved.last_step, saved.ended_because)

    def keep(self, record: dict[str, Any], problem: Problem, position: Position, *, now: bool) -> None:
        """Write where the fit stands, now or if it is time. Where it can't be written, the fit goes on all the same.

        It is written at once too if a signal asked for it; after SIGTERM the process ends.
        """
        clock = time.perf_counter()
        if self.folder is None or not leads() or not (now or self._asked.to_write or clock - self._tried >= self.every):
            return
        saved = Saved(
            identity=self.identity,
            stage=self.stage,
            seconds=self.seconds + clock - self._started,
            record={**record, "history": np.asarray(record["history"], float)},
            stopping=_plain_attributes(self.stopping),
            best_score=float(position.best_score),
            last_step=position.last_step,
            ended_because=position.ended_because,
            arrays=tuple(jax.tree.leaves((problem.trainable(), position.state, position.best))),
        )
        self._write(self.folder, saved, record["step"])
        self._tried = time.perf_counter()
        self._asked.obey()

    def _write(self, folder: Path, saved: Saved, step: int) -> None:
        """Or warn, once until it succeeds again."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write(folder / FILE, KIND, saved, NAMES)
        except OSError as error:
            if not self._failing:
                kept = "nothing yet" if self._step_written is None else f"step {self._step_written}"
                warnings.warn(
                    f"The checkpoint of step {step} can't be written to {folder}: {error}. The fit goes on, and in "
                    f"{self.every:g} s it is tried again; until then a fit that is killed goes on from {kept}.",
                    DgpaxWarning,
                    stacklevel=5,
                )
            self._failing = True
        else:
            self._step_written, self._failing = step, False


def _made(folder: Path) -> Path:
    """The folder, there if it can be; where it can't, writing will warn."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(f"checkpoint={str(folder)!r} isn't a folder: there is a file of that name.") from error
    except OSError as error:
        LOG.warning("The folder %s can't be made: %s.", folder, error)
    return folder


def _identity(stopping: AbstractStopping, parts: dict[str, Any]) -> dict[str, str]:
    """A fingerprint of every part, so that a refusal can say which one differs."""
    rule = (type(stopping), _plain_attributes(stopping))
    return {name: fingerprint(part) for name, part in {**parts, "stopping": rule}.items()}


def _plain_attributes(stopping: AbstractStopping) -> dict[str, Any]:
    return {name: value for name, value in vars(stopping).items() if is_plain(value)}


def _find(folder: Path, identity: dict[str, str]) -> Saved | None:
    """The checkpoint of this fit, None if there is none yet, or an error if it is another fit's."""
    if not (folder / FILE).exists():
        return None
    saved = read(folder / FILE, KIND, NAMES)
    if not isinstance(saved, Saved):
        raise ModelFileError(f"{folder / FILE} holds no checkpoint of this version of dgpax. Delete it to start anew.")
    differing = [name for name in identity if saved.identity.get(name) != identity[name]]
    if differing:
        raise InputError(
            f"The checkpoint in {folder} is of another fit, with another {', another '.join(differing)}. Call fit as "
            "it was called then, or give another folder."
        )
    return saved


def _filled(like: PyTree, arrays: tuple[Any, ...]) -> PyTree:
    """The same structure with these arrays."""
    leaves, structure = jax.tree.flatten(like)
    shapes = [(leaf.shape, leaf.dtype) for leaf in leaves]
    if shapes != [(np.shape(array), getattr(array, "dtype", None)) for array in arrays]:
        raise ModelFileError("The checkpoint's arrays are of other shapes: it was written by another version of dgpax.")
    return jax.tree.unflatten(structure, arrays)


def _refuse_another_record(saved: dict[str, Any], record: dict[str, Any]) -> None:
    """The saved record must have what this version's has."""
    history = saved.get("history")
    same = saved.keys() == record.keys() and isinstance(history, np.ndarray) and history.ndim == 1
    if not same or any(type(saved[name]) is not type(record[name]) for name in record if name != "history"):
        raise ModelFileError("The checkpoint's record isn't one of a fit: it was written by another version of dgpax.")
