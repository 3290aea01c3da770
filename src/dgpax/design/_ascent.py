"""Upwards from the best candidates, in one program."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ..programs import compiled
from ..typing import Array, Bool, Float
from ._base import AbstractCriterion
from ._beliefs import Beliefs
from ._space import Space
from ._survival import Survival

ROWS_AT_ONCE = 128
STEPS = 50
FIRST_STEP = 0.05
"""Of the unit cube's side; steps get smaller to nothing."""
MEMORY = 0.8, 0.95
"""Of Adam's averages of the gradient and of its square."""


class Task(NamedTuple):
    """What is maximised over the unit cube. Scores count from `floor` where failures make them smaller."""

    criterion: AbstractCriterion
    beliefs: Beliefs
    space: Space
    survival: Survival | None
    floor: Float[Array, ""]

    def worth(self, u: Float[Array, "N D"]) -> Float[Array, " N"]:
        scores = self.criterion.scores(self.beliefs, self.space.rows(u))
        return scores if self.survival is None else (scores - self.floor) * self.survival(u)


@compiled
def scored(task: Task, u: Float[Array, "N D"]) -> Float[Array, " N"]:
    """What every point is worth."""
    return task.worth(u)


@compiled
def ascended(task: Task, starts: Float[Array, "K D"], free: Bool[Array, " D"]) -> Float[Array, "K D"]:
    """The best point on each way up, by Adam with shrinking steps; only free coordinates move."""

    def total(u):
        worth = task.worth(u)
        return jnp.sum(worth), worth

    def step(state, number):
        u, first, second, best, value = state
        (_, worth), slope = jax.value_and_grad(total, has_aux=True)(u)
        slope = jnp.where(jnp.isfinite(slope), slope, 0.0)
        better = worth > value
        best, value = jnp.where(better[:, None], u, best), jnp.where(better, worth, value)
        first = MEMORY[0] * first + (1.0 - MEMORY[0]) * slope
        second = MEMORY[1] * second + (1.0 - MEMORY[1]) * slope**2
        unbiased = [m / (1.0 - decay ** (number + 1)) for m, decay in zip((first, second), MEMORY, strict=True)]
        rate = FIRST_STEP * 0.5 * (1.0 + jnp.cos(jnp.pi * number / STEPS))
        size = jnp.sqrt(unbiased[1])
        move = jnp.where(size > 0, unbiased[0] / jnp.where(size > 0, size, 1.0), 0.0)
        return (jnp.clip(u + rate * move * free, 0.0, 1.0), first, second, best, value), None

    nothing = jnp.zeros_like(starts)
    begun = (starts, nothing, nothing, starts, jnp.full(len(starts), -jnp.inf))
    (*_, best, _), _ = lax.scan(step, begun, jnp.arange(STEPS))
    return best
