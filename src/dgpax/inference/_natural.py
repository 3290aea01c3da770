"""Natural gradients on the posterior, an optax optimiser on the rest, in one engine."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from ..errors import InputError, InputTypeError
from ..parameters import partition
from ..posteriors import AbstractNatural
from ..typing import Array, Float, PyTree
from ._base import AbstractEngine, Info, noise_key, suitable_steps_per_call
from ._vector import flat_adam, norm


class NaturalState(NamedTuple):
    """`caution` multiplies both rates: halved after a rejected step, creeping back to 1."""

    trainable: PyTree
    optimiser: Any
    caution: Float[Array, ""]


class NaturalGradient(AbstractEngine):
    """Natural-gradient steps for q(u) of every layer, and Adam for all other parameters.

    The natural rate rises over the first `ramp_steps`; the block step of `posteriors.natural_step` is stable in
    inner layers too, where steps in natural parameters diverge.
    """

    natural_rate: float = eqx.field(static=True, default=0.1)
    ramp_steps: int = eqx.field(static=True, default=200)
    optimiser: optax.GradientTransformation = eqx.field(static=True, default_factory=lambda: flat_adam(0.03))
    max_steps: int = eqx.field(static=True, default=2000)
    steps_per_call: int = eqx.field(static=True, default_factory=suitable_steps_per_call)

    def __check_init__(self):
        if not 0 < self.natural_rate <= 1:
            raise InputError(f"NaturalGradient(natural_rate=...) must be in (0, 1]; got {self.natural_rate}.")

    def init(self, problem, key):
        trainable = problem.trainable()
        if not _naturals(trainable):
            raise InputTypeError(
                "NaturalGradient needs variational inference with a family that has natural gradients (mean-field, "
                f"coupled); there is none in {type(problem.target).__name__}. Use Gradient or LBFGS."
            )
        return NaturalState(trainable, self.optimiser.init(_others(trainable)), jnp.ones(()))

    def step(self, problem, state, key, step):
        loss_and_gradient = jax.value_and_grad(problem.loss, has_aux=True)
        (loss, terms), gradient = loss_and_gradient(state.trainable, noise_key(key, step))
        others = _others(state.trainable)
        updates, optimiser = self.optimiser.update(_others(gradient), state.optimiser, others)
        updates = jax.tree.map(lambda u: (state.caution * u).astype(u.dtype), updates)
        rate = self.natural_rate * state.caution * jnp.minimum(1.0, (step + 1) / max(self.ramp_steps, 1))
        moved = _natural_steps(problem.at(state.trainable), gradient, rate.astype(loss.dtype))
        trainable = eqx.combine(optax.apply_updates(others, updates), moved)
        info = Info(-loss, norm(gradient), terms.jitter, jnp.zeros((), bool))
        return NaturalState(trainable, optimiser, jnp.minimum(1.0, 1.01 * state.caution)), info


def _is_natural(node) -> bool:
    """A part that is trained as a whole."""
    return isinstance(node, AbstractNatural) and all(part.raw is not None for part in node.parameters())


def _naturals(trainable: PyTree) -> list[AbstractNatural]:
    return [node for node in jax.tree.leaves(trainable, is_leaf=_is_natural) if _is_natural(node)]


def _others(tree: PyTree) -> PyTree:
    """The trained values, or their derivatives, that take ordinary steps."""
    return jax.tree.map(lambda node: None if _is_natural(node) else node, tree, is_leaf=_is_natural)


def _natural_steps(target: PyTree, gradient: PyTree, rate) -> PyTree:
    """The trained values of the natural parts, each after its step."""

    def move(slope, node):
        return partition(node.natural_step(slope, rate))[0] if _is_natural(slope) else None

    return jax.tree.map(move, gradient, target, is_leaf=lambda node: node is None or _is_natural(node))
