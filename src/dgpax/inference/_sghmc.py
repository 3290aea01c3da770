"""Stochastic gradient Hamiltonian Monte Carlo over inducing outputs, with moving-window EM for all other parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jax import lax

from ..errors import InputError, InputTypeError
from ..parameters import AbstractParameter
from ..typing import Array, Bool, Float, Int, PyTree
from ._base import AbstractEngine, Info, noise_key
from ._vector import norm


class MarkovChain(eqx.Module):
    """The inducing outputs of every layer where the chain is now, and the draws that were kept."""

    current: tuple[AbstractParameter | None, ...]
    kept: tuple[AbstractParameter | None, ...]


class SGHMCState(NamedTuple):
    """`squared_slope` is a running mean of the squared gradient, from which the masses come; `window` holds the latest
    states of the chain; `num_kept` counts its draws; `caution` multiplies the step size, and is halved after a rejected
    step."""

    trainable: PyTree
    momentum: PyTree
    squared_slope: PyTree
    window: PyTree
    num_kept: Int[Array, ""]
    optimiser: Any
    caution: Float[Array, ""]


class SGHMC(AbstractEngine):
    """Langevin dynamics with momentum at temperature 1, a minibatch per step [Chen et al. 2014; Havasi et al. 2018].

    During the warm-up masses adapt to the gradients, and every step is followed by one of the optimiser on all other
    parameters at a state from the last `window_size` (moving-window EM). Then both stand still, and the state is kept
    every `spacing` steps. The splitting kick-drift-noise-drift makes no error in the positions of a Gaussian, whatever
    the step size [Leimkuhler & Matthews 2013]. As masses are at least the variance of a minibatch's gradient, its noise
    heats the chain by at most step_size / (2 friction).
    """

    step_size: float = eqx.field(static=True, default=0.05)
    friction: float = eqx.field(static=True, default=1.0)
    num_warmup: int = eqx.field(static=True, default=5_000)
    spacing: int = eqx.field(static=True, default=50)
    window_size: int = eqx.field(static=True, default=100)
    num_draws: int = eqx.field(static=True, default=100)
    averaging: float = eqx.field(static=True, default=0.01)
    optimiser: optax.GradientTransformation = eqx.field(static=True, default_factory=lambda: optax.adam(0.01))
    steps_per_call: int = eqx.field(static=True, default=50)
    max_steps: int = eqx.field(static=True, init=False)

    def __post_init__(self):
        self.max_steps = self.num_warmup + self.spacing * self.num_draws

    def __check_init__(self):
        for name in ("step_size", "friction"):
            if not getattr(self, name) > 0:
                raise InputError(f"SGHMC({name}=...) must be positive; got {getattr(self, name)}.")
        for name in ("spacing", "window_size", "num_draws"):
            if getattr(self, name) < 1:
                raise InputError(f"SGHMC({name}=...) must be at least 1; got {getattr(self, name)}.")

    def init(self, problem, key):
        trainable = problem.trainable()
        chain, others = _split(trainable)
        if any(draws.shape[0] != self.num_draws for draws in jax.tree.leaves(chain.kept)):
            raise InputError(
                f"SGHMC keeps num_draws={self.num_draws} draws, but the method has room for another number: "
                "give both the same, Sampling(num_draws=...) and SGHMC(num_draws=...)."
            )
        zero = jax.tree.map(jnp.zeros_like, chain.current)
        window = jax.tree.map(lambda v: jnp.zeros((self.window_size, *v.shape), v.dtype), chain.current)
        none = jnp.zeros((), int)
        return SGHMCState(trainable, zero, zero, window, none, self.optimiser.init(others), jnp.ones(()))

    def step(self, problem, state, key, step):
        key_loss, key_move, key_window, key_others = jr.split(noise_key(key, step), 4)
        chain, others = _split(state.trainable)

        def potential(v, others, key):
            moved = eqx.tree_at(lambda c: c.current, chain, v, is_leaf=lambda node: node is chain.current)
            return problem.loss(_joined(state.trainable, moved, others), key)

        (loss, terms), slope = jax.value_and_grad(potential, has_aux=True)(chain.current, others, key_loss)
        warming = step < self.num_warmup
        state = self._adapted(state, slope, warming)
        v, momentum = self._move(state, chain.current, slope, key_move)
        window = jax.tree.map(lambda w, new: w.at[step % self.window_size].set(new), state.window, v)

        def train(values, optimiser):
            index = jr.randint(key_window, (), 0, jnp.minimum(step + 1, self.window_size))
            old = jax.tree.map(lambda w: w[index], window)
            gradient = jax.grad(lambda own: potential(old, own, key_others)[0])(values)
            updates, optimiser = self.optimiser.update(gradient, optimiser, values)
            return optax.apply_updates(values, updates), optimiser

        others, optimiser = lax.cond(warming, train, lambda *same: same, others, state.optimiser)
        due = ~warming & ((step - self.num_warmup) % self.spacing == self.spacing - 1)
        moved = MarkovChain(v, _keep(chain.kept, v, state.num_kept, due))
        state = SGHMCState(
            _joined(state.trainable, moved, others),
            momentum,
            state.squared_slope,
            window,
            state.num_kept + due,
            optimiser,
            jnp.minimum(1.0, 1.001 * state.caution),
        )
        return state, Info(-loss, norm(slope), terms.jitter, jnp.zeros((), bool))

    def retreat(self, state):
        still = jax.tree.map(jnp.zeros_like, state.momentum)
        return state._replace(momentum=still, caution=0.5 * state.caution)

    def result(self, state):
        """A chain that ended early repeats the draws that it has, or where it is if it has none."""
        chain, others = _split(state.trainable)
        number = jnp.arange(self.num_draws) % jnp.maximum(state.num_kept, 1)
        kept = jax.tree.map(lambda draws, v: jnp.where(state.num_kept > 0, draws[number], v), chain.kept, chain.current)
        return _joined(state.trainable, MarkovChain(chain.current, kept), others)

    def _adapted(self, state: SGHMCState, slope: PyTree, warming) -> SGHMCState:
        weight = jnp.where(warming, self.averaging, 0.0)
        squared = jax.tree.map(
            lambda old, new: (old + weight * (new**2 - old)).astype(old.dtype), state.squared_slope, slope
        )
        return state._replace(squared_slope=squared)

    def _move(self, state: SGHMCState, position: PyTree, slope: PyTree, key) -> tuple[PyTree, PyTree]:
        """p ← p − δ∇U; drift by δ/2; p ← c p + noise; drift by δ/2. The mass is 1 + E[∇U²], near the precision."""
        leaves, structure = jax.tree.flatten(position)
        parts = zip(
            leaves,
            jax.tree.leaves(state.momentum),
            jax.tree.leaves(slope),
            jax.tree.leaves(state.squared_slope),
            jr.split(key, len(leaves)),
            strict=True,
        )
        moved = [self._move_one(state.caution, *part) for part in parts]
        positions, momenta = zip(*moved, strict=True)
        return jax.tree.unflatten(structure, positions), jax.tree.unflatten(structure, momenta)

    def _move_one(self, caution, v, p, slope, squared_slope, key):
        delta = (self.step_size * caution).astype(v.dtype)
        keep = jnp.exp(-self.friction * delta)
        mass = 1.0 + squared_slope
        noise = jnp.sqrt((1.0 - keep**2) * mass) * jr.normal(key, v.shape, v.dtype)
        p = p - delta * slope
        v = v + 0.5 * delta * p / mass
        p = keep * p + noise
        return v + 0.5 * delta * p / mass, p


def _keep(kept: PyTree, v: PyTree, number: Int[Array, ""], due: Bool[Array, ""]) -> PyTree:
    """With this state as the next draw, if one is due."""

    def store(draws, new):
        place = jnp.minimum(number, draws.shape[0] - 1)
        return draws.at[place].set(jnp.where(due, new, draws[place]))

    return jax.tree.map(store, kept, v)


def _is_chain(node) -> bool:
    return isinstance(node, MarkovChain)


def _split(trainable: PyTree) -> tuple[MarkovChain, PyTree]:
    """The chain, and the trained values around it."""
    chains = [node for node in jax.tree.leaves(trainable, is_leaf=_is_chain) if _is_chain(node)]
    if len(chains) != 1:
        raise InputTypeError("SGHMC draws inducing outputs: use it with inference='sghmc', that is Sampling().")
    return chains[0], jax.tree.map(lambda node: None if _is_chain(node) else node, trainable, is_leaf=_is_chain)


def _joined(like: PyTree, chain: MarkovChain, others: PyTree) -> PyTree:
    """The trained values with this chain in its place."""
    return jax.tree.map(lambda node, other: chain if _is_chain(node) else other, like, others, is_leaf=_is_chain)
