"""The no-U-turn sampler, by blackjax, for the trained values of a model."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from ..errors import InputError, InputTypeError
from ..model import DeepGP
from ..parameters import AbstractParameter, Real, at_free_values, free_values
from ..typing import Array, Float, Int, PyTree, RandomKey
from ._base import AbstractEngine, Info, Problem, keep_where
from ._vector import norm

START_SPREAD = 0.5
"""Between the chains where they begin, on the free scale."""
START_STEP = 0.1


class ModelAndDraws(NamedTuple):
    """A model where the chains begin, and its trained values in every draw [S, n], on the free scale; those of a chain
    are `num_chains` apart."""

    model: DeepGP
    draws: AbstractParameter

    @classmethod
    def at(cls, model: DeepGP, num_draws: int) -> ModelAndDraws:
        """With room for so many draws."""
        here = free_values(model)
        return cls(model, Real(jnp.broadcast_to(here, (num_draws, here.size))))


class NUTSState(NamedTuple):
    """`chains`, `step_sizes` and `masses` are blackjax's, with a leading axis of chains; `num_kept` counts draws."""

    trainable: PyTree
    chains: Any
    step_sizes: Any
    masses: Any
    num_kept: Int[Array, ""]
    caution: Float[Array, ""]


class NUTS(AbstractEngine):
    """Hamiltonian trajectories that end where they would turn back [Hoffman & Gelman 2014], several chains at once.

    In the warm-up step sizes and diagonal masses adapt to the target, on Stan's schedule; then both stand still, and
    every `spacing` steps each chain gives a draw. It needs blackjax: the extra `nuts`.
    """

    needs_all_rows: ClassVar[bool] = True

    num_draws: int = eqx.field(static=True, default=64)
    num_chains: int = eqx.field(static=True, default=4)
    num_warmup: int = eqx.field(static=True, default=300)
    spacing: int = eqx.field(static=True, default=5)
    target_acceptance: float = eqx.field(static=True, default=0.8)
    steps_per_call: int = eqx.field(static=True, default=25)
    max_steps: int = eqx.field(static=True, init=False)

    def __post_init__(self):
        self.max_steps = self.num_warmup + self.spacing * (self.num_draws // max(1, self.num_chains))

    def __check_init__(self):
        if self.num_chains < 1 or self.num_draws < 1 or self.num_draws % self.num_chains:
            raise InputError(
                f"NUTS needs num_draws that its chains can share; got {self.num_draws} draws of {self.num_chains} "
                "chains."
            )

    def init(self, problem, key):
        model, draws = _parts(problem)
        if draws.shape[0] != self.num_draws:
            raise InputError(
                f"NUTS gives num_draws={self.num_draws} draws, but the method has room for {draws.shape[0]}: give both "
                "the same."
            )
        start = free_values(model)
        positions = start + START_SPREAD * jr.normal(key, (self.num_chains, start.size), start.dtype)
        chains = jax.vmap(lambda x: _sampler().init(x, _density(problem, key)))(positions)
        finite = jnp.isfinite(chains.logdensity) & jnp.all(jnp.isfinite(chains.logdensity_grad), axis=-1)
        there = _sampler().init(start, _density(problem, key))
        chains = jax.vmap(lambda fine, own: keep_where(fine, own, there))(finite, chains)
        begin_steps, _, _ = self._step_sizes()
        begin_masses, _, _ = _masses()
        step_sizes = jax.vmap(lambda x: _arrays(begin_steps(START_STEP), x))(positions)
        masses = jax.vmap(lambda x: _arrays(begin_masses(start.size), x))(positions)
        return NUTSState(problem.trainable(), chains, step_sizes, masses, jnp.zeros((), int), jnp.ones(()))

    def step(self, problem, state, key, step):
        keys = jr.split(jr.fold_in(key, step), self.num_chains)
        _, adapted, final = self._step_sizes()
        warming, kernel, density = step < self.num_warmup, _sampler().build_kernel(), _density(problem, key)

        def move(own_key, chain, step_size, mass):
            log_size = jnp.where(warming, step_size.log_step_size, step_size.log_step_size_avg)
            size = state.caution * jnp.exp(log_size)
            moved, info = kernel(own_key, chain, density, size.astype(chain.position.dtype), mass.inverse_mass_matrix)
            return moved, info.acceptance_rate

        chains, acceptance = jax.vmap(move)(keys, state.chains, state.step_sizes, state.masses)
        step_sizes = _like(state.step_sizes, jax.vmap(adapted)(state.step_sizes, acceptance))
        masses, step_sizes = self._window(state, chains, step_sizes, final, step)
        due = ~warming & ((step - self.num_warmup) % self.spacing == self.spacing - 1)
        new = NUTSState(
            self._keep(state, chains, due),
            chains,
            keep_where(warming, step_sizes, state.step_sizes),
            keep_where(warming, masses, state.masses),
            state.num_kept + self.num_chains * due,
            jnp.minimum(1.0, 1.01 * state.caution),
        )
        objective = jnp.mean(chains.logdensity)
        return new, Info(objective, norm(chains.logdensity_grad), jnp.zeros_like(objective), jnp.zeros((), bool))

    def result(self, state):
        """Chains that ended early repeat the draws that they have."""
        kept = state.trainable.draws.raw
        number = jnp.arange(self.num_draws) % jnp.maximum(state.num_kept, 1)
        filled = jnp.where(state.num_kept > 0, kept[number], kept)
        return eqx.tree_at(lambda trainable: trainable.draws.raw, state.trainable, filled)

    def _window(self, state: NUTSState, chains, step_sizes, final, step):
        """Masses from the positions of a window, and at its end step sizes that begin anew."""
        slow, ends = _schedule(self.num_warmup, step)
        begin, _, _ = self._step_sizes()
        _, seen, finish = _masses()
        masses = keep_where(slow, _like(state.masses, jax.vmap(seen)(state.masses, chains.position)), state.masses)
        finished = _like(masses, jax.vmap(finish)(masses))
        anew = _like(step_sizes, jax.vmap(lambda own: begin(final(own)))(step_sizes))
        return keep_where(ends, finished, masses), keep_where(ends, anew, step_sizes)

    def _keep(self, state: NUTSState, chains, due) -> PyTree:
        kept = state.trainable.draws.raw
        place = jnp.minimum(state.num_kept, self.num_draws - self.num_chains)
        stored = jax.lax.dynamic_update_slice_in_dim(kept, chains.position.astype(kept.dtype), place, axis=0)
        return eqx.tree_at(lambda trainable: trainable.draws.raw, state.trainable, jnp.where(due, stored, kept))

    def _step_sizes(self):
        from blackjax.adaptation.step_size import dual_averaging_adaptation

        return dual_averaging_adaptation(self.target_acceptance)


def _sampler():
    try:
        from blackjax import nuts
    except ImportError as error:
        raise InputError('NUTS needs blackjax, which isn\'t installed: pip install "dgpax[nuts]".') from error
    return nuts


def _masses():
    from blackjax.adaptation.mass_matrix import mass_matrix_adaptation

    return mass_matrix_adaptation(True)


def _schedule(num_warmup: int, step: Int[Array, ""]):
    """Whether a step belongs to a window that masses are learnt in, and whether it ends one."""
    from blackjax.adaptation.window_adaptation import build_schedule

    slow, ends = jnp.asarray([*build_schedule(num_warmup), (0, False)], int).T
    return slow[jnp.minimum(step, num_warmup)] == 1, ends[jnp.minimum(step, num_warmup)] == 1


def _parts(problem: Problem) -> ModelAndDraws:
    if not isinstance(problem.target, ModelAndDraws):
        raise InputTypeError(
            'NUTS draws hyperparameters: use it with Exact(hyperparameters="sampled"), or Sparse(...).'
        )
    return problem.target


def _density(problem: Problem, key: RandomKey):
    model, trainable = _parts(problem).model, problem.trainable()
    return lambda free: -problem.loss(trainable._replace(model=at_free_values(model, free)), key)[0]


def _arrays(tree: PyTree, like: Float[Array, " n"]) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, None if isinstance(leaf, int) else like.dtype), tree)


def _like(old: PyTree, new: PyTree) -> PyTree:
    return jax.tree.map(lambda a, b: jnp.asarray(b, a.dtype), old, new)
