"""Ask and tell, in a file that survives."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.stats import qmc

from ..errors import DgpaxWarning, InputError
from ..fits import AbstractFit
from ..inference import check_count
from ..recipes import Recipe
from ..typing import Float
from ._base import AbstractCriterion
from ._candidates import evenly_spread, is_new
from ._memory import Memory, Plan, Progress, keep, recall
from ._refit import refitted
from ._space import Space
from ._suggest import Constraints, as_criterion, propose

OUTSIDE = 1e-9
"""Of the box's side: how far rounding may lead out of it."""
NUM_SPREAD = 1024
STOP_BELOW = 0.01
"""Of the spread of the values so far: a run that is worth less isn't worth its cost, as a rule."""


class Study:
    """A series of runs of a simulator: `ask` where to run, `tell` what came out, as often as you like.

    `bounds` and `criterion` are those of `suggest`. The first `num_initial` runs are a Latin hypercube, the others are
    suggested by a fit, a deep GP with two layers unless the words of a recipe say otherwise: `inference="exact"`,
    `num_layers=3`, `max_time=30.0`, `seed=1`. With a `path`, everything is in that file after every call, and the same
    call goes on from there after the process was killed: nothing told is lost and the next `ask` is the same.
    `constraints` can't be kept in a file and are given every time.

    >>> import dgpax
    >>> study = dgpax.design.Study({"speed": (0.0, 3.0)}, "ei", num_initial=4, seed=1)
    >>> rows = study.ask(2)
    >>> study.tell(rows, [float((row["speed"] - 1.0) ** 2) for row in rows])
    >>> study.num_runs, len(study.ask(3))
    (2, 3)
    """

    def __init__(
        self,
        bounds: Any,
        criterion: str | AbstractCriterion = "alc",
        *,
        path: str | os.PathLike[str] | None = None,
        num_initial: int | None = None,
        constraints: Constraints | None = None,
        **recipe: Any,
    ):
        space = Space.of(bounds)
        words = {"num_layers": 2} if recipe.get("inference", "variational") == "variational" else {}
        words = Recipe(**{**words, "progress": False, **recipe})
        count = max(6, 2 * len(space.names) + 2) if num_initial is None else num_initial
        check_count("Study(num_initial=...)", count, 2)
        self.path = None if path is None else Path(path)
        self.constraints = constraints
        nothing = np.zeros((0, len(space.columns)))
        begun = Progress(nothing, np.zeros((0, 0)), nothing, (), ())
        self._memory = Memory(Plan(space, as_criterion(criterion), words, count), begun, None)
        if self.path is not None and self.path.exists():
            self._go_on_from(self.path)
        else:
            self._keep()

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, constraints: Constraints | None = None) -> Study:
        """The study in a file."""
        study = cls.__new__(cls)
        study.path, study.constraints, study._memory = Path(path), constraints, recall(Path(path))
        return study

    def ask(self, n: int = 1) -> list[dict[str, Any]]:
        """The n runs that should be under way: those that were asked for before and have no values yet, and new ones.

        Asking again without telling gives the same rows. A run that will never have values is told as NaN.
        """
        check_count("ask(n)", n, 1)
        waiting = self._progress.open
        if n > len(waiting):
            new, worth = self._new_rows(n - len(waiting))
            waiting = np.concatenate([waiting, new])
            self._progress = self._progress._replace(open=waiting, worth=self._progress.worth + worth)
            self._keep()
        return self.space.words(waiting[:n])

    def tell(self, rows: Sequence[Mapping[str, Any] | Sequence[Any]] | np.ndarray, values: Any) -> None:
        """What came out at these rows: [N] or [N, P] numbers, or dictionaries of outputs by their names; NaN or None
        for a run that failed. Rows needn't have been asked for."""
        x = self.space.encoded(list(rows)).reshape(len(rows), -1)
        names, y = _values(values)
        self._check_told(x, y, names)
        progress = self._progress
        known = progress.y if progress.y.shape[1] else np.zeros((0, y.shape[1]))
        self._progress = progress._replace(
            x=np.concatenate([progress.x, x]),
            y=np.concatenate([known, y]),
            open=self._without(progress.open, x),
            outputs=progress.outputs or names,
        )
        self._keep()

    @property
    def space(self) -> Space:
        """The box."""
        return self._memory.plan.space

    @property
    def num_runs(self) -> int:
        """How many runs were told."""
        return len(self._progress.x)

    @property
    def x(self) -> Float[np.ndarray, "N E"]:
        """What was run, as the model is given it."""
        return self._progress.x

    @property
    def y(self) -> Float[np.ndarray, "N P"]:
        """What came out, NaN where a run failed."""
        return self._progress.y

    @property
    def outputs(self) -> tuple[str, ...]:
        """What the values are called."""
        return self._progress.outputs

    @property
    def criterion(self) -> AbstractCriterion:
        """What runs are chosen for."""
        return self._memory.plan.criterion

    @property
    def worth(self) -> tuple[tuple[int, float], ...]:
        """After how many runs a new one was asked for, and what it was expected to be worth, as a share of the spread
        of the values so far."""
        return self._progress.worth

    @property
    def advice(self) -> str:
        """Whether to go on, in a sentence."""
        if not self.worth:
            left = self._memory.plan.num_initial - self.num_runs
            return f"{max(left, 0)} runs of the first {self._memory.plan.num_initial} are left before a model is asked."
        share = self.worth[-1][1]
        said = f"the next run is expected to be worth {share:.2g} of the spread of the values so far"
        return f"Stop: {said}." if share < STOP_BELOW else f"Go on: {said}."

    def fitted(self) -> AbstractFit:
        """A fit of all runs that didn't fail, made anew if there are others since the last one."""
        good = ~np.isnan(self.y).any(axis=1)
        last, count = self._memory.trained, int(good.sum())
        if last is None or last.num_runs != count:
            if count < 2:
                raise InputError(f"A fit needs at least 2 runs with values; there are {count} in {self.num_runs}.")
            last = refitted(self._memory.plan.recipe, self.x[good], self.y[good], last)
            self._memory = self._memory._replace(trained=last)
            self._keep()
        return last.fit

    def _new_rows(self, n: int) -> tuple[np.ndarray, tuple[tuple[int, float], ...]]:
        """Of the first design, as long as there is some of it, and then by the fit."""
        first = self._first_rows(n)
        if len(first) == n:
            return first, ()
        if not self._can_fit():
            return np.concatenate([first, self._more_rows(n - len(first), first)]), ()
        waiting = np.concatenate([self._progress.open, first])
        seed = self._memory.plan.recipe.seed + self.num_runs
        found = propose(
            self.fitted(), self.space, n - len(first), self.criterion, data=(self.x, self.y),
            constraints=self.constraints, pending=waiting, seed=seed,
        )  # fmt: skip
        spread = float(np.mean(np.nanstd(self.y, axis=0))) or 1.0
        share = self.criterion.relative(float(found.worth[0]), spread)
        return np.concatenate([first, found.rows]), ((self.num_runs, share),)

    def _first_rows(self, n: int) -> np.ndarray:
        """The next of the Latin hypercube, counting all that were told or asked for."""
        plan = self._memory.plan
        sampler = qmc.LatinHypercube(len(self.space.names), optimization="random-cd", rng=plan.recipe.seed)
        u = self.space.snapped(sampler.random(plan.num_initial))
        rows = self._allowed(self._rows(u))
        rows = np.unique(rows, axis=0) if np.isfinite(self.space.size) else rows
        known = np.concatenate([self.x, self._progress.open])
        return self._without(rows, known)[: max(0, min(n, plan.num_initial - len(known)))]

    def _more_rows(self, n: int, first: np.ndarray) -> np.ndarray:
        """Evenly over the box, where a model knows nothing yet."""
        if self.num_runs >= self._memory.plan.num_initial and np.isnan(self.y).any(axis=1).all():
            warnings.warn(
                f"All {self.num_runs} runs failed (NaN) and there is nothing to learn from: rows are spread evenly.",
                DgpaxWarning,
                stacklevel=4,
            )
        known = np.concatenate([self.x, self._progress.open, first])
        rng = np.random.default_rng(self._memory.plan.recipe.seed)
        u = evenly_spread(self.space, NUM_SPREAD, rng)
        rows = self._without(self._allowed(self._rows(u)), known)[:n]
        if len(rows) < n:
            raise InputError(f"{n} new rows were asked for; {len(rows)} are left in the box and its constraints.")
        return rows

    def _can_fit(self) -> bool:
        good = self.y[~np.isnan(self.y).any(axis=1)]
        return len(good) >= max(2, min(self._memory.plan.num_initial, 4))

    def _rows(self, u: np.ndarray) -> np.ndarray:
        return np.asarray(self.space.rows(jnp.asarray(u)))

    def _without(self, rows: np.ndarray, known: np.ndarray) -> np.ndarray:
        """The rows that aren't among those that are known."""
        if not len(rows) or not len(known):
            return rows
        return rows[is_new(self.space.units(rows), self.space.units(known))]

    def _allowed(self, rows: np.ndarray) -> np.ndarray:
        return rows if self.constraints is None else rows[np.asarray(self.constraints(rows), bool)]

    def _check_told(self, x: np.ndarray, y: np.ndarray, names: tuple[str, ...]) -> None:
        if len(x) != len(y) or not len(x):
            raise InputError(f"tell(rows, values) needs a value for every row; got {len(x)} rows and {len(y)} values.")
        u = self.space.units(x)
        outside = np.flatnonzero(np.any((u < -OUTSIDE) | (u > 1.0 + OUTSIDE), axis=1))
        if len(outside):
            raise InputError(
                f"Row {outside[0]}, {self.space.words(x[outside[:1]])[0]}, lies outside of the bounds, "
                f"{len(outside)} of {len(x)} do. Begin a study with wider bounds to use them."
            )
        if np.isinf(y).any():
            raise InputError("A value is infinite. Tell a run that failed as NaN.")
        known, wide = self._progress, y.shape[1]
        if known.y.shape[1] not in (0, wide) or (known.outputs and names and known.outputs != names):
            raise InputError(
                f"Runs so far have {known.y.shape[1]} values, {', '.join(known.outputs)}; these have {wide}, "
                f"{', '.join(names)}."
            )

    def _go_on_from(self, path: Path) -> None:
        found, asked = recall(path), self._memory.plan
        if found.plan != asked:
            raise InputError(
                f"{path} holds a study with other bounds, criterion or words: {found.plan}; asked for was {asked}. Use "
                "Study.load(path) to go on with it, or another file."
            )
        self._memory = found

    @property
    def _progress(self) -> Progress:
        return self._memory.progress

    @_progress.setter
    def _progress(self, progress: Progress) -> None:
        self._memory = self._memory._replace(progress=progress)

    def _keep(self) -> None:
        if self.path is not None:
            keep(self.path, self._memory)


def _values(values: Any) -> tuple[tuple[str, ...], Float[np.ndarray, "N P"]]:
    """Names, () where there are none, and numbers, NaN for None."""
    values = list(values)
    if values and isinstance(values[0], Mapping):
        names = tuple(map(str, values[0]))
        values = [[row[name] for name in names] for row in values]
    else:
        names = ()
    try:
        y = np.array([[np.nan if entry is None else float(entry) for entry in np.atleast_1d(row)] for row in values])
    except (TypeError, ValueError) as error:
        raise InputError(f"Values must be numbers, or NaN for a run that failed; got {values[:3]!r}.") from error
    return names, y.reshape(len(values), -1)
