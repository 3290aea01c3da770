"""Steps at full rate while they pay, then ever smaller ones."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp

from ..errors import InputError
from ..typing import Array, Bool, Float, Int
from ._base import AbstractEngine, keep_where, suitable_steps_per_call
from ._collapse import Refuge, collapsed, doubtful, refuge, updated
from ._gradient import Gradient
from ._natural import NaturalGradient


class SettlingState(NamedTuple):
    """`average` is a running mean of the objective and `best` its highest value that counted, `waited` steps ago;
    `taken` counts all steps, `settled` the smaller ones, which began because nothing was gained any more if `flat`."""

    inner: Any
    kept: Refuge
    average: Float[Array, ""]
    best: Float[Array, ""]
    waited: Int[Array, ""]
    taken: Int[Array, ""]
    settled: Int[Array, ""]
    flat: Bool[Array, ""]


class Settling(AbstractEngine):
    """The steps of another engine until the objective is flat, then `settle_steps` more at a rate that falls to zero.

    Flat means that its running mean hasn't gained `tolerance` nats per row, and one nat in all, for `patience` steps.
    With a constant rate a stochastic objective never comes to rest: the falling one takes the noise out of the trained
    values. It then counts as converged. Of `max_steps`, the last ones settle in any case, but if the objective wasn't
    flat before them, it hasn't converged.

    A collapse is undone: where the objective falls by more than a nat per row, as it may in deep models on minibatches,
    a state from before comes back, and steps are half as long for a while.
    """

    has_rule: ClassVar[bool] = True

    engine: NaturalGradient | Gradient = eqx.field(default_factory=NaturalGradient)
    tolerance: float = eqx.field(static=True, default=0.005)
    patience: int = eqx.field(static=True, default=100)
    settle_steps: int = eqx.field(static=True, default=200)
    max_steps: int = eqx.field(static=True, default=2000)
    steps_per_call: int = eqx.field(static=True, default_factory=suitable_steps_per_call)

    def __check_init__(self):
        if self.patience < 1 or self.settle_steps < 1:
            raise InputError(
                f"Settling needs patience >= 1 and settle_steps >= 1; got {self.patience}, {self.settle_steps}."
            )

    def init(self, problem, key):
        nothing, none = jnp.full((), -jnp.inf, jnp.result_type(float)), jnp.zeros((), int)
        inner = self.engine.init(problem, key)
        return SettlingState(inner, refuge(inner), nothing, nothing, none, none, none, jnp.zeros((), bool))

    def step(self, problem, state, key, step):
        settling = (state.settled > 0) | (state.taken >= self.max_steps - self.settle_steps)
        flat = state.flat | (~settling & (state.waited >= self.patience))
        settling = settling | flat
        progress = jnp.minimum(state.settled / self.settle_steps, 1.0)
        rate = jnp.where(settling, 0.5 * (1.0 + jnp.cos(jnp.pi * progress)), 1.0)
        caution = state.inner.caution
        inner, info = self.engine.step(problem, state.inner._replace(caution=caution * rate), key, step)
        inner = inner._replace(caution=jnp.minimum(1.0, 1.01 * caution))
        num_rows = problem.feed.total_weight
        bad = collapsed(state.kept, info.objective, num_rows)
        back = state.kept.state._replace(caution=0.5 * caution)
        good = updated(state.kept, state.inner, info.objective, step)
        kept = keep_where(bad, doubtful(state.kept, info.objective), good)
        believed = jnp.where(bad, state.average, info.objective)
        started = jnp.isfinite(state.average)
        average = jnp.where(started, state.average + (believed - state.average) * 2 / self.patience, believed)
        gained = average > state.best + jnp.maximum(self.tolerance * num_rows, 1.0)
        settled = state.settled + settling
        moved = SettlingState(
            keep_where(bad, back, inner),
            kept,
            average.astype(state.average.dtype),
            jnp.where(gained, average, state.best).astype(state.best.dtype),
            jnp.where(gained, 0, state.waited + 1),
            state.taken + 1,
            settled,
            flat,
        )
        return moved, info._replace(converged=flat & (settled >= self.settle_steps))

    def retreat(self, state):
        return state._replace(inner=self.engine.retreat(state.inner), taken=state.taken + 1)

    def result(self, state):
        return self.engine.result(state.inner)
