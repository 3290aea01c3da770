"""What a study remembers, and the file it is kept in."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import ModelFileError
from ..fits import AbstractFit
from ..io import REGISTRY, refuse_ranges
from ..recipes import Recipe
from ..storage import Names, read, write
from ._alc import ALC
from ._base import AbstractCriterion
from ._ei import ExpectedImprovement
from ._entropy import ContourEntropy
from ._space import Between, OneOf, Space, Whole
from ._thompson import Thompson
from ._variance import Variance
from ._vigf import VIGF

KIND = "dgpax study"


class Plan(NamedTuple):
    """What a study is told at its beginning."""

    space: Space
    criterion: AbstractCriterion
    recipe: Recipe
    num_initial: int


class Progress(NamedTuple):
    """What became of it: runs in the order in which they were told (NaN: failed), rows that were asked for and have no
    values yet, and what the last of them was worth, as a share of the spread of the values, after so many runs."""

    x: np.ndarray
    y: np.ndarray
    open: np.ndarray
    outputs: tuple[str, ...]
    worth: tuple[tuple[int, float], ...]


class Trained(NamedTuple):
    """The last fit, how many runs it knows, and how many the last one that began anew."""

    fit: AbstractFit
    num_runs: int
    num_runs_anew: int


class Memory(NamedTuple):
    """All of a study."""

    plan: Plan
    progress: Progress
    trained: Trained | None


OWN = (
    ALC, Between, ContourEntropy, ExpectedImprovement, Memory, OneOf, Plan, Progress, Recipe, Space, Thompson, Trained,
    Variance, VIGF, Whole,
)  # fmt: skip
NAMES = Names({**REGISTRY.known, **{f"design.{kind.__name__}": kind for kind in OWN}})


def keep(path: Path, memory: Memory) -> None:
    """Write it in full, or leave what was there."""
    write(path, KIND, memory, NAMES)


def recall(path: Path) -> Memory:
    """Read it, or raise `ModelFileError`."""
    memory = read(path, KIND, NAMES)
    if not isinstance(memory, Memory):
        raise ModelFileError(f"{path} holds a {type(memory).__name__}, not a study.")
    x, y, waiting = memory.progress.x, memory.progress.y, memory.progress.open
    wide = len(memory.plan.space.columns)
    rows = x.ndim == y.ndim == waiting.ndim == 2 and x.shape[1] == waiting.shape[1] == wide and len(x) == len(y)
    if not rows or not (np.isfinite(x).all() and np.isfinite(waiting).all()) or np.isinf(y).any():
        raise ModelFileError(f"{path} holds runs that don't fit together. It was changed.")
    if memory.trained is not None:
        refuse_ranges(memory.trained.fit)
    return memory
