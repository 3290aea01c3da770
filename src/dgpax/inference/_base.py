"""The contracts of inference: a method says what is trained and maximised, and an engine takes the steps."""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax
from jax.lax import stop_gradient

from ..data import AbstractFeed, Dataset, as_feed
from ..distributed import mesh, sharing, together
from ..model import DeepGP
from ..objectives import AbstractObjective, AbstractTerms
from ..parameters import combine, find, log_prior, matches, partition
from ..posteriors import AbstractPosterior
from ..programs import compiled
from ..typing import Array, Bool, Float, Int, PyTree, RandomKey
from ._arguments import check_count
from ._mismatch import check_model, largest_kuu
from ._outcome import Outcome, gp_outcome
from ._vector import all_finite


class Info(NamedTuple):
    """What there is to look at after a step. `objective` includes the hyper-priors."""

    objective: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    jitter: Float[Array, ""]
    converged: Bool[Array, ""]


class AbstractMethod(AbstractObjective):
    """A way of inference: what is trained, what is maximised, and which posterior comes out.

    A method says what its `target` is, its `terms` and its `default_engine`; the rest is as for a model that is trained
    together with its posterior on rows of data, and a method replaces what differs.
    """

    needs_all_rows: ClassVar[bool] = False
    """Whether its objective isn't a sum over rows, which batches of them can stand for."""

    @property
    def warm_up(self) -> tuple[str, ...]:
        """Paths of parameters that are held fixed until the others have been trained once."""
        return ()

    def check(self, model: Any, data: Dataset) -> Dataset:
        """The data as `target` takes them, in the model's units, or an error that says what doesn't fit."""
        return check_model(model, data)

    @abc.abstractmethod
    def target(self, model: Any, data: Dataset) -> PyTree:
        """What is trained: the model, or the model with a posterior."""

    def stages(self, target: PyTree) -> list[frozenset[str]]:
        """What is held: first some parameters, if there are any to hold and others to train; then none."""
        everything = {name for name, parameter in find(target).items() if parameter.trainable}
        held = frozenset(name for name in everything if any(matches(name, pattern) for pattern in self.warm_up))
        if not everything:
            return []
        if not held or held == everything:
            return [frozenset()]
        return [held, frozenset()]

    def starts(self, target: PyTree, data: Dataset) -> list[PyTree]:
        """Targets that differ in their values, from each of which an engine that can go several ways begins."""
        return [target]

    def prepare(self, target: PyTree, data: Dataset) -> PyTree:
        """What the objective reads in every step: the data, or sums over them that hold for all trained values."""
        return data

    def finish(self, target: PyTree, data: Dataset) -> tuple[DeepGP, AbstractPosterior]:
        """The model and the posterior that were inferred."""
        return target.model, target.posterior

    def outcome(self, target: PyTree, model: Any, data: Dataset, scaled: Dataset) -> Outcome:
        """The fit that a trained target makes, and what is to be reported of it; `scaled` is what `check` gave."""
        return gp_outcome(self, target, model, data, scaled)

    def largest_matrix(self, model: Any, data: Dataset) -> int:
        """The number of rows of the largest matrix that is factorised in a step."""
        return largest_kuu(model)

    @abc.abstractmethod
    def default_engine(self) -> "AbstractEngine":
        """The engine that is used when none is named."""


class Problem(eqx.Module):
    """What an engine works on. `held` says of every trained array whether it stays where it is for now.

    It is data, not structure, so that a warm-up and the main run are the same compiled program. `starts` are trained
    values from which an engine that can go several ways begins. `batch` are the rows of a step, None outside of steps.
    """

    method: AbstractObjective
    target: PyTree
    feed: AbstractFeed
    held: PyTree
    starts: tuple[PyTree, ...]
    batch: PyTree

    def __init__(
        self,
        method: AbstractObjective,
        target: PyTree,
        data: AbstractFeed | PyTree,
        held: frozenset[str] = frozenset(),
        starts: Sequence[PyTree] = (),
    ):
        self.method, self.target, self.feed, self.batch = method, target, as_feed(data), None
        self.starts = tuple(partition(start)[0] for start in starts or (target,))
        self.held = jax.tree_util.tree_map_with_path(
            lambda path, _: jnp.asarray(jax.tree_util.keystr(path).strip(".").removesuffix(".raw") in held),
            self.trainable(),
        )

    def trainable(self) -> PyTree:
        """The raw arrays that are trained."""
        return partition(self.target)[0]

    def at(self, trainable: PyTree) -> PyTree:
        """The target with these trained values."""
        return combine(trainable, partition(self.target)[1])

    def free(self) -> PyTree:
        """1 for every trained number that may move, 0 for those that are held."""
        return jax.tree.map(lambda leaf, held: jnp.where(held, 0.0, jnp.ones_like(leaf)), self.trainable(), self.held)

    @property
    def data(self) -> PyTree:
        """What the objective reads: the batch of a step, and outside of steps what stands for all rows."""
        return self.feed.head if self.batch is None else self.batch

    def on_batch(self, block: PyTree, key: RandomKey, step: Int[Array, ""]) -> "Problem":
        """The problem on the rows of this step, from a block of the feed; `key` is the engine's."""
        batch = self.feed.batch(block, rows_key(key), step)
        return eqx.tree_at(lambda problem: problem.batch, self, batch, is_leaf=lambda node: node is None)

    def loss(self, trainable: PyTree, key: RandomKey) -> tuple[Float[Array, ""], AbstractTerms]:
        """Minus the objective and the log hyper-priors; its gradient is zero where values are held."""
        moving = jax.tree.map(lambda leaf, held: jnp.where(held, stop_gradient(leaf), leaf), trainable, self.held)
        target = self.at(moving)
        terms = self.method.terms(target, self.data, key)
        return -(terms.total + log_prior(target)), terms


def rows_key(key: RandomKey) -> RandomKey:
    """What rows are drawn with, of an engine's key."""
    return jr.split(key)[0]


def noise_key(key: RandomKey, step: Int[Array, ""]) -> RandomKey:
    """What everything else in a step is drawn with, of an engine's key."""
    return jr.fold_in(jr.split(key)[1], step)


STEPS_PER_CALL = {"cpu": 25}
STEPS_PER_CALL_ON_ACCELERATORS = 100


def keep_where(condition: Bool[Array, ""], yes: PyTree, no: PyTree) -> PyTree:
    """The first tree if the condition holds, else the second."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def suitable_steps_per_call() -> int:
    """Steps between two looks of the host: on an accelerator a look takes as long as some of them."""
    return STEPS_PER_CALL.get(jax.default_backend(), STEPS_PER_CALL_ON_ACCELERATORS)


class AbstractEngine(eqx.Module):
    """Takes steps. A state holds what the next step needs and nothing else; it is a pytree of arrays.

    A state that is a NamedTuple with `trainable`, the trained values, and `caution`, which multiplies its steps, needs
    neither a `retreat` nor a `result` of the engine's own.
    """

    has_rule: ClassVar[bool] = False
    """Whether it says when it has converged; otherwise `max_steps` is its plan, not a limit."""
    needs_all_rows: ClassVar[bool] = False
    """Whether the objective must be the same in every step."""

    max_steps: eqx.AbstractVar[int]
    steps_per_call: eqx.AbstractVar[int]

    def __check_init__(self):
        check_count(f"{type(self).__name__}(max_steps=...)", self.max_steps, 0)
        check_count(f"{type(self).__name__}(steps_per_call=...)", self.steps_per_call, 1)

    @abc.abstractmethod
    def init(self, problem: Problem, key: RandomKey) -> Any:
        """The first state."""

    @abc.abstractmethod
    def step(self, problem: Problem, state: Any, key: RandomKey, step: Int[Array, ""]) -> tuple[Any, Info]:
        """The next state; the problem is on the step's batch.

        All randomness is a function of (key, step), so that a run can be resumed.
        """

    def begin(self, problem: Problem, key: RandomKey) -> Any:
        """`init`, as the loop calls it: compiled."""
        return _compiled_init(self, problem, key)

    def advance(self, problem: Problem, state: Any, key: RandomKey, start: int, end: int) -> tuple[Any, Any, Any]:
        """The state after some steps, none past `end`; of each of them its Info, and whether it was accepted."""
        block = problem.feed.block(rows_key(key), start, self.steps_per_call)
        arguments = self, problem, block, state, key, jnp.asarray(start), jnp.asarray(end)
        state, told = _compiled_steps(*arguments) if mesh() is None else together(_shared_steps, *arguments)
        infos, accepted = jax.tree.map(lambda leaf: np.asarray(leaf)[: end - start], told)
        return state, infos, accepted

    def retreat(self, state: Any) -> Any:
        """The state to go on from after a step that was rejected: same values, a more careful step."""
        return state._replace(caution=0.5 * state.caution)

    def result(self, state: Any) -> PyTree:
        """The trained values in a state."""
        return state.trainable

    def target(self, problem: Problem, state: Any) -> PyTree:
        """The target at a state."""
        return problem.at(self.result(state))


@compiled
def _compiled_init(engine: AbstractEngine, problem: Problem, key: RandomKey):
    return engine.init(problem, key)


def take_steps(engine: AbstractEngine, problem: Problem, block: PyTree, state, key: RandomKey, start, end):
    """`steps_per_call` steps in one program, none past `end`, each on its batch of the block.

    A step is kept only if everything in it is finite.
    """

    def take(state, step):
        new, info = engine.step(problem.on_batch(block, key, step), state, key, step)
        accepted = jnp.isfinite(info.objective) & all_finite(engine.result(new))
        return keep_where(accepted, new, engine.retreat(state)), (info, accepted)

    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(take, state, start)[1])

    def body(state, step):
        return lax.cond(step < end, take, lambda state, _: (state, nothing), state, step)

    return lax.scan(body, state, start + jnp.arange(engine.steps_per_call))


_compiled_steps = compiled(take_steps)


def _shared_steps(*arguments):
    """The same, with rows that all devices share."""
    with sharing(mesh()):
        return take_steps(*arguments)
