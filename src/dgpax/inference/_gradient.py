"""Stochastic gradient steps with any optax optimiser."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from ..typing import Array, Float, PyTree
from ._base import AbstractEngine, Info, noise_key, suitable_steps_per_call
from ._vector import flat_adam, norm


class GradientState(NamedTuple):
    """`caution` multiplies every update: halved after a rejected step, creeping back to 1."""

    trainable: PyTree
    optimiser: Any
    caution: Float[Array, ""]


class Gradient(AbstractEngine):
    """Adam at a rate of 0.01 unless told otherwise: `Gradient(optimiser=optax.adamw(1e-3))`."""

    optimiser: optax.GradientTransformation = eqx.field(static=True, default_factory=lambda: flat_adam(0.01))
    max_steps: int = eqx.field(static=True, default=2000)
    steps_per_call: int = eqx.field(static=True, default_factory=suitable_steps_per_call)

    def init(self, problem, key):
        trainable = problem.trainable()
        return GradientState(trainable, self.optimiser.init(trainable), jnp.ones(()))

    def step(self, problem, state, key, step):
        (loss, terms), gradient = jax.value_and_grad(problem.loss, has_aux=True)(state.trainable, noise_key(key, step))
        updates, optimiser = self.optimiser.update(gradient, state.optimiser, state.trainable)
        updates = jax.tree.map(lambda u: (state.caution * u).astype(u.dtype), updates)
        trainable = optax.apply_updates(state.trainable, updates)
        caution = jnp.minimum(1.0, 1.01 * state.caution)
        info = Info(-loss, norm(gradient), terms.jitter, jnp.zeros((), bool))
        return GradientState(trainable, optimiser, caution), info
