"""Quasi-Newton steps, for objectives without noise or whose draws stay the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.flatten_util import ravel_pytree

from ..errors import InputError
from ..objectives import AbstractTerms
from ..programs import compiled
from ..typing import Array, Float, Int, PyTree
from ._base import AbstractEngine, Info, Problem

SUFFICIENT_DECREASE, CURVATURE = 1e-4, 0.9
MAX_TRIALS = 20
QUIET_ITERATIONS = 3
STEPS_FOR_ALL = 100
"""After which descents that are behind are no longer waited for."""
LONGEST_MOVE = 2.0
"""Of a raw value in one iteration; large ones, which are nearly values themselves, may move by as much again."""


class Search(NamedTuple):
    """A line search in progress: the next trial is `size` along the direction, the answer between low and high."""

    size: Float[Array, ""]
    low: Float[Array, ""]
    high: Float[Array, ""]
    trials: Int[Array, ""]


class Memory(NamedTuple):
    """The last changes of the point and of the gradient; weight 1/(s·y), 0 where there is none yet."""

    s: Float[Array, "H n"]
    y: Float[Array, "H n"]
    weight: Float[Array, " H"]


class Descent(NamedTuple):
    """One restart. `point` is the best so far; it moves when a trial is accepted."""

    point: Float[Array, " n"]
    value: Float[Array, ""]
    gradient: Float[Array, " n"]
    direction: Float[Array, " n"]
    search: Search
    memory: Memory
    quiet: Int[Array, ""]


class LBFGSState(NamedTuple):
    """Every array has a leading axis of restarts; `like` gives vectors the structure of the parameters."""

    descents: Descent
    like: PyTree


class LBFGS(AbstractEngine):
    """L-BFGS with a weak-Wolfe line search by bracketing [Nocedal & Wright 2006, Algorithm 7.4; Lewis & Overton 2013].

    One step is one evaluation of the objective: the line search is part of the state, so the compiled program
    holds the objective once. It begins at every start that the method knows; more `restarts` than these begin at raw
    values moved by N(0, spread²). All advance together and the best one counts. It has converged when three iterations
    in a row gain less than `tolerance` relative to the objective, in the best descent and, for 100 steps, in all.

    The bound of a deep model is an average over draws, which stay the same from the first step to the last [Giordano,
    Ingram & Broderick 2024]: small models with all rows in every step can end higher than by noisy steps. It fits its
    draws, so take enough of them, `Variational(num_samples=100)`, or go on from a fit with another seed.
    """

    has_rule: ClassVar[bool] = True
    needs_all_rows: ClassVar[bool] = True

    max_steps: int = eqx.field(static=True, default=1000)
    restarts: int = eqx.field(static=True, default=1)
    spread: float = eqx.field(static=True, default=0.5)
    tolerance: float = eqx.field(static=True, default=1e-8)
    memory: int = eqx.field(static=True, default=10)
    steps_per_call: int = eqx.field(static=True, default=5)

    def __check_init__(self):
        if self.restarts < 1:
            raise InputError(f"LBFGS(restarts=...) must be at least 1; got {self.restarts}.")

    def init(self, problem, key):
        """Nothing is evaluated yet: every restart begins with a trial of its own starting point."""
        like = problem.trainable()
        known = jnp.stack([ravel_pytree(start)[0] for start in problem.starts])
        more = max(0, self.restarts - len(known))
        noise = jr.normal(key, (more, known.shape[1]), known.dtype) * ravel_pytree(problem.free())[0]
        points = jnp.concatenate([known, known[0] + self.spread * noise])
        return LBFGSState(jax.vmap(self._begin)(points), like)

    def step(self, problem, state, key, step):
        loss = _loss(problem, key)
        descents, jitter = jax.vmap(lambda descent: self._advance(descent, loss))(state.descents)
        best = jnp.argmin(descents.value)
        quiet = descents.quiet >= QUIET_ITERATIONS
        converged = quiet[best] & (jnp.all(quiet) | (step >= STEPS_FOR_ALL))
        gradient_norm = jnp.sqrt(jnp.sum(descents.gradient[best] ** 2))
        info = Info(-descents.value[best], gradient_norm, jitter[best], converged)
        return LBFGSState(descents, state.like), info

    def retreat(self, state):
        return state._replace(descents=jax.vmap(self._forget)(state.descents))

    def result(self, state):
        return _best(state)

    def _begin(self, point) -> Descent:
        empty = jnp.zeros((self.memory, point.size), point.dtype)
        memory = Memory(empty, empty, jnp.zeros(self.memory, point.dtype))
        nowhere, unknown = jnp.zeros_like(point), jnp.asarray(jnp.inf, point.dtype)
        search = _new_search(jnp.zeros((), point.dtype))
        return Descent(point, unknown, nowhere, nowhere, search, memory, jnp.zeros((), int))

    def _advance(self, descent: Descent, loss) -> tuple[Descent, Float[Array, ""]]:
        trial = descent.point + descent.search.size * descent.direction
        (value, terms), gradient = jax.value_and_grad(loss, has_aux=True)(trial)
        slope = jnp.dot(descent.gradient, descent.direction)
        finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
        lower = finite & (value <= descent.value + SUFFICIENT_DECREASE * descent.search.size * slope)
        flat = jnp.dot(gradient, descent.direction) >= CURVATURE * slope
        last = descent.search.trials + 1 >= MAX_TRIALS
        moved = self._move(descent, trial, value, gradient)
        searching = descent._replace(search=_narrow(descent, value, slope, lower))
        stuck = self._forget(descent)._replace(quiet=descent.quiet + 1)
        accept = lower & (flat | last)
        return _choose(accept, moved, _choose(last, stuck, searching)), terms.jitter

    def _move(self, descent: Descent, point, value, gradient) -> Descent:
        memory = _remember(descent.memory, point - descent.point, gradient - descent.gradient)
        direction = -_apply_inverse_hessian(memory, gradient)
        downhill = jnp.dot(direction, gradient) < 0
        direction = _shortened(jnp.where(downhill, direction, -gradient), point)
        knows_curvature = jnp.any(memory.weight > 0)
        search = _choose(knows_curvature, _new_search(jnp.ones((), value.dtype)), _first_search(gradient))
        gain = (descent.value - value) / jnp.maximum(1.0, jnp.abs(value))
        quiet = jnp.where(gain < self.tolerance, descent.quiet + 1, 0)
        return Descent(point, value, gradient, direction, search, memory, quiet)

    def _forget(self, descent: Descent) -> Descent:
        memory = descent.memory._replace(weight=jnp.zeros_like(descent.memory.weight))
        search = _first_search(descent.gradient)
        search = search._replace(size=jnp.minimum(search.size, 0.1 * descent.search.size))
        return descent._replace(direction=-descent.gradient, search=search, memory=memory)


@compiled
def _best(state: LBFGSState) -> PyTree:
    """The parameters of the restart that is ahead."""
    value = state.descents.value
    best = jnp.argmin(jnp.where(jnp.isfinite(value), value, jnp.inf))
    return ravel_pytree(state.like)[1](state.descents.point[best])


def _loss(problem: Problem, key) -> Callable[[Float[Array, " n"]], tuple[Float[Array, ""], AbstractTerms]]:
    unravel = ravel_pytree(problem.trainable())[1]
    return lambda point: problem.loss(unravel(point), key)


def _shortened(direction: Float[Array, " n"], point: Float[Array, " n"]) -> Float[Array, " n"]:
    """No raw value leaps to where a constraint ends, from where there is no slope that leads back."""
    return direction / jnp.maximum(1.0, jnp.max(jnp.abs(direction) / (LONGEST_MOVE + jnp.maximum(point, 0.0))))


def _new_search(size: Float[Array, ""]) -> Search:
    zero = jnp.zeros_like(size)
    return Search(size, zero, zero + jnp.inf, jnp.zeros((), int))


def _first_search(gradient: Float[Array, " n"]) -> Search:
    """Without curvature, the first trial moves by at most 1."""
    return _new_search(1.0 / jnp.maximum(1.0, jnp.sqrt(jnp.sum(gradient**2))))


def _narrow(descent: Descent, value, slope, lower) -> Search:
    """Too short a step moves `low` up, too long a one moves `high` down; the next trial is inside, or twice as long.

    Below a step that was too long from zero, the minimum of the parabola through both ends is tried.
    """
    size = descent.search.size
    low = jnp.where(lower, size, descent.search.low)
    high = jnp.where(lower, descent.search.high, size)
    bend = 2.0 * (value - descent.value - slope * size)
    parabola = jnp.where(jnp.isfinite(value) & (bend > 0), -slope * size**2 / bend, 0.1 * size)
    inside = jnp.where(low == 0, jnp.clip(parabola, 0.1 * high, 0.5 * high), 0.5 * (low + high))
    return Search(jnp.where(jnp.isinf(high), 2.0 * size, inside), low, high, descent.search.trials + 1)


def _remember(memory: Memory, s, y) -> Memory:
    curvature = jnp.dot(s, y)
    useful = curvature > 1e-12 * jnp.dot(y, y)
    pushed = Memory(
        jnp.roll(memory.s, -1, axis=0).at[-1].set(s),
        jnp.roll(memory.y, -1, axis=0).at[-1].set(y),
        jnp.roll(memory.weight, -1).at[-1].set(1.0 / jnp.where(useful, curvature, 1.0)),
    )
    return _choose(useful, pushed, memory)


def _apply_inverse_hessian(memory: Memory, gradient: Float[Array, " n"]) -> Float[Array, " n"]:
    """The two-loop recursion [Nocedal & Wright 2006, Algorithm 7.4], scaled by the latest curvature."""
    newest_y, weight = memory.y[-1], memory.weight[-1]
    scale = jnp.where(weight > 0, 1.0 / jnp.where(weight > 0, weight * jnp.dot(newest_y, newest_y), 1.0), 1.0)

    def first(q, entry):
        s, y, weight = entry
        alpha = weight * jnp.dot(s, q)
        return q - alpha * y, alpha

    def second(r, entry):
        (s, y, weight), alpha = entry
        return r + s * (alpha - weight * jnp.dot(y, r)), None

    q, alphas = jax.lax.scan(first, gradient, memory, reverse=True)
    return jax.lax.scan(second, scale * q, (memory, alphas))[0]


def _choose(condition, yes: PyTree, no: PyTree) -> PyTree:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
