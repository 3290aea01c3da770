"""Quasi-Newton steps for objectives without noise."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jax import lax

from ..errors import InputError
from ..typing import Array, Float, Int, PyTree
from ._base import AbstractEngine, Info

QUIET_STEPS = 3


class LBFGSState(NamedTuple):
    """Every array has a leading axis of restarts. `quiet` counts steps in a row that gained next to nothing."""

    trainable: PyTree
    optimiser: Any
    value: Float[Array, " R"]
    gradient: PyTree
    quiet: Int[Array, " R"]


class LBFGS(AbstractEngine):
    """L-BFGS with a strong-Wolfe line search [Nocedal & Wright 2006, Algorithms 7.4, 3.5, 3.6].

    Restart 0 begins where the model is; the others at raw values moved by N(0, spread²). All advance together
    and the best one counts. It has converged when three steps in a row gain less than `tolerance` relative to
    the objective, in every restart.
    """

    max_steps: int = eqx.field(static=True, default=500)
    restarts: int = eqx.field(static=True, default=1)
    spread: float = eqx.field(static=True, default=0.5)
    tolerance: float = eqx.field(static=True, default=1e-8)
    memory: int = eqx.field(static=True, default=10)
    steps_per_call: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        if self.restarts < 1:
            raise InputError(f"LBFGS(restarts=...) must be at least 1; got {self.restarts}.")

    def _optimiser(self):
        search = optax.scale_by_zoom_linesearch(max_linesearch_steps=20, initial_guess_strategy="one")
        return optax.lbfgs(memory_size=self.memory, linesearch=search)

    def init(self, problem, key):
        def begin(index):
            start = _perturb(problem.trainable(), jr.fold_in(key, index), jnp.where(index == 0, 0.0, self.spread))
            value, gradient = jax.value_and_grad(lambda t: problem.loss(t, key)[0])(start)
            return LBFGSState(start, self._optimiser().init(start), value, gradient, jnp.zeros((), int))

        return lax.map(begin, jnp.arange(self.restarts))

    def step(self, problem, state, key, step):
        def one(single: LBFGSState):
            def loss(trainable):
                value = problem.loss(trainable, key)[0]
                return jnp.where(jnp.isfinite(value), value, jnp.finfo(value.dtype).max / 1e6)

            updates, optimiser = self._optimiser().update(
                single.gradient, single.optimiser, single.trainable,
                value=single.value, grad=single.gradient, value_fn=loss,
            )  # fmt: skip
            trainable = optax.apply_updates(single.trainable, updates)
            value, gradient = optax.tree.get(optimiser, "value"), optax.tree.get(optimiser, "grad")
            gain = (single.value - value) / jnp.maximum(1.0, jnp.abs(value))
            quiet = jnp.where(gain < self.tolerance, single.quiet + 1, 0)
            return LBFGSState(trainable, optimiser, value, gradient, quiet)

        new = lax.map(one, state)
        best = jnp.argmin(state.value)
        norm = optax.global_norm(jax.tree.map(lambda g: g[best], state.gradient))
        info = Info(-state.value[best], norm, jnp.zeros(()), jnp.all(new.quiet >= QUIET_STEPS))
        return new, info

    def retreat(self, state):
        def forget(single):
            return self._optimiser().init(single)

        return state._replace(optimiser=lax.map(forget, state.trainable), quiet=state.quiet + 1)

    def result(self, state):
        return jax.tree.map(lambda leaf: leaf[jnp.argmin(state.value)], state.trainable)


def _perturb(tree: PyTree, key, spread) -> PyTree:
    leaves, structure = jax.tree.flatten(tree)
    keys = jr.split(key, max(len(leaves), 1))
    moved = [
        leaf + spread.astype(leaf.dtype) * jr.normal(k, leaf.shape, leaf.dtype)
        for leaf, k in zip(leaves, keys, strict=False)
    ]
    return jax.tree.unflatten(structure, moved)
