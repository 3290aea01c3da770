"""Where to run next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.stats import qmc

from ..data import Dataset
from ..errors import InputError, UnknownNameError
from ..fits import AbstractFit
from ..inference import as_seed, check_count
from ..recipes import padded
from ..typing import Float
from ._alc import ALC
from ._ascent import ROWS_AT_ONCE, Task, ascended, scored
from ._base import AbstractCriterion
from ._beliefs import Beliefs, Runs
from ._candidates import candidates, new_ones
from ._ei import ExpectedImprovement
from ._entropy import ContourEntropy
from ._space import Space
from ._survival import Survival
from ._thompson import Thompson
from ._variance import Variance
from ._vigf import VIGF

NUM_CANDIDATES = 512
NUM_REFERENCES = 64
NUM_STARTS = 8
APART = 0.05
"""Of the unit cube's side: how far starts are from each other."""
FEWEST_SLOTS = 4
BACK = np.linspace(1.0, 0.0, 6)
"""Where on the way from a candidate to where it led constraints are asked for."""
CRITERIA: dict[str, type[AbstractCriterion]] = {
    "variance": Variance,
    "alc": ALC,
    "vigf": VIGF,
    "ei": ExpectedImprovement,
    "thompson": Thompson,
}
Constraints = Callable[[Float[np.ndarray, "N E"]], Any]


class Suggestion(NamedTuple):
    """Rows to run, the most valuable first, and what each was worth when it was chosen."""

    rows: Float[np.ndarray, "n E"]
    worth: Float[np.ndarray, " n"]


def suggest(
    fitted: AbstractFit,
    bounds: Any,
    n: int = 1,
    criterion: str | AbstractCriterion = "variance",
    *,
    data: Any = None,
    constraints: Constraints | None = None,
    pending: Any = None,
    seed: int = 0,
) -> Float[np.ndarray, "n E"]:
    """The n rows at which the simulator should run next, in its units, the most valuable first.

    `fitted` is any fit. `bounds` has a pair (low, high), `Whole(low, high)` or `OneOf(values)` for every input.
    `criterion` says what a run is for: "variance" (where least is known), "alc" (what teaches most about the whole
    box), "vigf" (where the function is steep or open), "ei" (the smallest value), "thompson" (the same, by drawn
    functions); or one with settings, such as `ExpectedImprovement(maximise=True)` or `ContourEntropy(level=3.0)`.

    `data` are the runs so far, a Dataset or a pair (x, y): none of them is suggested again, and rows whose y is NaN are
    failed runs, near which a run is worth less. `pending` are rows that run now and have no value yet. `constraints`
    takes rows [N, E] and says of each whether it may run.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 0.5, 8)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    >>> dgpax.design.suggest(fitted, [(0.0, 1.0)])
    array([[1.]])
    """
    return propose(fitted, bounds, n, criterion, data=data, constraints=constraints, pending=pending, seed=seed).rows


def propose(
    fitted: AbstractFit,
    bounds: Any,
    n: int = 1,
    criterion: str | AbstractCriterion = "variance",
    *,
    data: Any = None,
    constraints: Constraints | None = None,
    pending: Any = None,
    seed: int = 0,
) -> Suggestion:
    """As `suggest`, with what every row is worth by the criterion, once those before it are done."""
    space, wanted = Space.of(bounds), as_criterion(criterion)
    check_count("suggest(n=...)", n, 1)
    rng = np.random.default_rng(as_seed(seed))
    if len(space.columns) != fitted.num_inputs:
        raise InputError(
            f"bounds are for {len(space.columns)} inputs, {', '.join(space.columns)}; the model has "
            f"{fitted.num_inputs}. Give a pair (low, high) for every input, in their order."
        )
    x, y = _runs(data, fitted)
    waiting = np.zeros((0, len(space.columns))) if pending is None else np.asarray(pending, float)
    slots = _slots(n - 1 + len(waiting))
    references = space.rows(jnp.asarray(space.snapped(qmc.Sobol(len(space.names), rng=0).random(NUM_REFERENCES))))
    succeeded = np.all(~np.isnan(y), axis=1)
    runs, tried = _padded(x, np.where(succeeded[:, None], y, 0.0), succeeded)
    beliefs = Beliefs.of(fitted, references, runs, slots, seed, wanted.num_draws)
    wanted.check(beliefs)
    for row in waiting:
        beliefs = beliefs.given(jnp.asarray(row))
    survival = None if succeeded.all() else Survival.of(*_tried(space, runs, tried))
    search = Search(space, wanted, survival, space.units(np.concatenate([x, waiting])), constraints, rng)
    rows, worth = [], []
    for _ in range(n):
        u, gain = search.best(beliefs)
        search = search._replace(done=np.concatenate([search.done, u[None]]))
        chosen = space.rows(jnp.asarray(u)[None])[0]
        rows.append(np.asarray(chosen))
        worth.append(gain)
        if len(rows) < n:
            beliefs = beliefs.given(chosen)
    return Suggestion(np.stack(rows), np.asarray(worth))


def as_criterion(criterion: str | AbstractCriterion) -> AbstractCriterion:
    """The criterion that a word stands for."""
    if isinstance(criterion, AbstractCriterion):
        return criterion
    if criterion == "entropy":
        raise InputError('criterion="entropy" needs a level: ContourEntropy(level=...).')
    if criterion not in CRITERIA:
        raise UnknownNameError(
            f"criterion={criterion!r} isn't known. There are: {', '.join(CRITERIA)}, entropy "
            f"({ContourEntropy.__name__}(level=...))."
        )
    return CRITERIA[criterion]()


class Search(NamedTuple):
    """The box, what is wanted of it, and what was done, in the unit cube."""

    space: Space
    criterion: AbstractCriterion
    survival: Survival | None
    done: Float[np.ndarray, "R D"]
    constraints: Constraints | None
    rng: np.random.Generator

    def best(self, beliefs: Beliefs) -> tuple[Float[np.ndarray, " D"], float]:
        """The most valuable point that is new and allowed, and its worth."""
        found = candidates(self.space, self.done, NUM_CANDIDATES, self.rng)
        found = found[self._allowed(found)]
        if not len(found):
            raise InputError(self._nothing_left())
        task = Task(self.criterion, beliefs, self.space, self.survival, jnp.zeros(()))
        worth = _scored(task, found)
        task = task._replace(floor=jnp.asarray(min(0.0, float(worth.min()))))
        worth = worth if self.survival is None else _scored(task, found)
        starts = _apart(found, worth, NUM_STARTS)
        if self.space.free.any():
            ends = np.asarray(ascended(task, jnp.asarray(starts), jnp.asarray(self.space.free)))
            ends = np.concatenate([t * ends + (1.0 - t) * starts for t in (BACK if self.constraints else BACK[:1])])
            ends = new_ones(ends[self._allowed(ends)], self.done)
            found = np.concatenate([found, ends])
            worth = np.concatenate([worth, _scored(task, ends)]) if len(ends) else worth
        chosen = int(np.argmax(worth))
        return found[chosen], float(worth[chosen])

    def _allowed(self, u: Float[np.ndarray, "N D"]) -> np.ndarray:
        if self.constraints is None or not len(u):
            return np.ones(len(u), bool)
        said = np.asarray(self.constraints(np.asarray(self.space.rows(jnp.asarray(u)))))
        if said.shape != (len(u),) or said.dtype != bool:
            raise InputError(
                f"constraints takes rows [N, {len(self.space.columns)}] and gives N truth values; of {len(u)} rows it "
                f"gave shape {said.shape} of {said.dtype}."
            )
        return said

    def _nothing_left(self) -> str:
        if np.isfinite(self.space.size):
            return (
                f"Nothing is left to suggest: of {self.space.size:,.0f} different rows, all that may run were run or "
                "are in this batch. Ask for fewer, or widen the bounds."
            )
        return f"None of {NUM_CANDIDATES} candidates satisfies the constraints. Tighten the bounds around what does."


def _scored(task: Task, u: Float[np.ndarray, "N D"]) -> Float[np.ndarray, " N"]:
    """What every point is worth, some at a time; what isn't finite is worth nothing."""
    whole = np.concatenate([u, np.broadcast_to(u[:1], (-len(u) % ROWS_AT_ONCE, u.shape[1]))])
    chunks = whole.reshape(-1, ROWS_AT_ONCE, u.shape[1])
    worth = np.concatenate([np.asarray(scored(task, jnp.asarray(chunk))) for chunk in chunks])[: len(u)]
    return np.where(np.isfinite(worth), worth, -np.inf)


def _apart(points: Float[np.ndarray, "N D"], worth: Float[np.ndarray, " N"], count: int) -> Float[np.ndarray, "K D"]:
    """The best points that aren't next to each other; copies of the best one where there are fewer."""
    chosen: list[np.ndarray] = []
    for point in points[np.argsort(-worth)]:
        if not chosen or np.min(np.max(np.abs(np.stack(chosen) - point), axis=1)) > APART:
            chosen.append(point)
        if len(chosen) == count:
            break
    return np.stack([*chosen, *[chosen[0]] * (count - len(chosen))])


def _slots(wanted: int) -> int:
    """Places for pending runs: few numbers, so that programs are shared."""
    return 0 if wanted == 0 else max(FEWEST_SLOTS, 1 << (wanted - 1).bit_length())


def _runs(data: Any, fitted: AbstractFit) -> tuple[np.ndarray, np.ndarray]:
    """Rows and values, NaN where a run failed; there may be none."""
    P = fitted.model.layers[-1].num_outputs
    if data is None:
        return np.zeros((0, fitted.num_inputs)), np.zeros((0, P))
    if isinstance(data, Dataset):
        data = data.counted()
        data = data.x, data.y
    x, y = (np.asarray(values, float) for values in data)
    y = y[:, None] if y.ndim == 1 else y
    if x.ndim != 2 or x.shape[1] != fitted.num_inputs or len(x) != len(y) or np.isnan(x).any():
        raise InputError(
            f"data are the runs so far, x [N, {fitted.num_inputs}] without gaps and y [N]; got {x.shape}, {y.shape}."
        )
    if y.shape[1] != P:
        raise InputError(
            f"The model has {P} latent functions for {y.shape[1]} columns of y. Runs are chosen by what is believed "
            "about the values themselves: use a likelihood with one function for each, such as GaussianNoise."
        )
    return x, y


def _padded(x: np.ndarray, y: np.ndarray, succeeded: np.ndarray) -> tuple[Runs, np.ndarray]:
    """Filled up to one of few sizes, and which rows were tried."""
    if not len(x):
        x, y, succeeded = np.zeros((1, x.shape[1])), np.zeros((1, y.shape[1])), np.zeros(1, bool)
        return Runs(jnp.asarray(padded(x)), jnp.asarray(padded(y)), jnp.asarray(padded(succeeded))), padded(succeeded)
    tried = np.arange(len(padded(x))) < len(x)
    there = padded(succeeded) & tried
    return Runs(jnp.asarray(padded(x)), jnp.asarray(padded(y)), jnp.asarray(there)), tried


def _tried(space: Space, runs: Runs, tried: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return space.units(np.asarray(runs.x)), tried, np.asarray(runs.there)
