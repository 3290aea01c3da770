"""Checkpoints: where a fit stands, in a file, from which it goes on as if nothing had happened."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from ..errors import InputError, ModelFileError
from ..storage import Names, fingerprint, is_plain, read, write
from ..typing import PyTree
from ._base import Problem
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


class Checkpoints:
    """The latest checkpoint of one fit, in a folder. Without a folder nothing is kept. Mutable, for one fit.

    `identity` has a fingerprint of everything the fit depends on. Every draw is a function of (seed, step), so that the
    state of the engine is all that is needed to go on.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, every: float, stopping: AbstractStopping, **parts: Any):
        if not every >= 0:
            raise InputError(f"fit(checkpoint_every=...) is a time in seconds; got {every}.")
        self.every, self.stopping = every, stopping
        self.folder = None if folder is None else Path(folder)
        self.identity = {} if folder is None else _identity(stopping, parts)
        self._saved = None if self.folder is None else _find(self.folder, self.identity)
        self.stage = 0 if self._saved is None else self._saved.stage
        self.seconds = 0.0 if self._saved is None else self._saved.seconds
        self._started = self._written = time.perf_counter()

    def enter(self, record: dict[str, Any], problem: Problem, start: Position) -> tuple[Problem, Position]:
        """Where a stage begins: at its start, or where the checkpoint left it. `record` is brought up to date."""
        saved, self._saved = self._saved, None
        if saved is None:
            return problem, start
        trainable, state, best = _filled((problem.trainable(), start.state, start.best), saved.arrays)
        record.update(saved.record, history=saved.record["history"].tolist())
        record["resumed_at"] = (*record["resumed_at"], record["step"])
        vars(self.stopping).update(saved.stopping)
        LOG.info("Resumed the fit of %s at step %d, after %.0f s.", self.folder, record["step"], saved.seconds)
        problem = eqx.tree_at(lambda problem: problem.target, problem, problem.at(trainable))
        return problem, Position(state, best, saved.best_score, saved.last_step, saved.ended_because)

    def keep(self, record: dict[str, Any], problem: Problem, position: Position, *, now: bool) -> None:
        """Write where the fit stands, now or if it is time."""
        clock = time.perf_counter()
        if self.folder is None or not (now or clock - self._written >= self.every):
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
        write(self.folder / FILE, KIND, saved, NAMES)
        self._written = time.perf_counter()


def _identity(stopping: AbstractStopping, parts: dict[str, Any]) -> dict[str, str]:
    """A fingerprint of every part, so that a refusal can say which one differs."""
    rule = (type(stopping), _plain_attributes(stopping))
    return {name: fingerprint(part) for name, part in {**parts, "stopping": rule}.items()}


def _plain_attributes(stopping: AbstractStopping) -> dict[str, Any]:
    return {name: value for name, value in vars(stopping).items() if is_plain(value)}


def _find(folder: Path, identity: dict[str, str]) -> Saved | None:
    """The checkpoint of this fit, None if there is none yet, or an error if it is another fit's."""
    folder.mkdir(parents=True, exist_ok=True)
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
    if shapes != [(array.shape, array.dtype) for array in arrays]:
        raise ModelFileError("The checkpoint's arrays are of other shapes: it was written by another version of dgpax.")
    return jax.tree.unflatten(structure, arrays)
