"""Monte Carlo expectation-maximisation over hidden layers and inducing points [STRIDE, Algorithm 1]."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..errors import InputTypeError
from ..inference import AbstractEngine, Info
from ..typing import Array, Float, Int, PyTree
from ._expectation import num_looks, sample, watched_rows
from ._hidden import AbstractHiddenMethod
from ._initial import Initial
from ._maximisation import Maximisation, maximise, restart
from ._problem import Posterior
from ._samplers import PCN, AbstractSampler, Chains, choose, crank_nicolson, normal_like
from ._settings import Schedule

START_SCALE = 0.5


class Record(NamedTuple):
    """What happened, by iteration; NaN where one wasn't taken."""

    acceptance: Float[Array, " T"]
    never_moved: Float[Array, " T"]
    """Chains that accepted nothing."""
    bound: Float[Array, " T"]
    """Mean F_V over particles after the exchanges; NaN without inducing points to exchange."""
    exchanged: Float[Array, " T"]
    log_likelihood: Float[Array, "T A S"]
    predictions: Float[Array, "T A S R P"]
    """E[f | a particle] at some rows, at every look."""

    @classmethod
    def empty(cls, schedule: Schedule, posterior: Posterior, chains: Chains) -> Record:
        first, rows = jax.tree.map(lambda leaf: leaf[0], chains.position), watched_rows(posterior.y.shape[0])
        seen = jax.eval_shape(posterior.look, first, rows).f
        T = schedule.num_iterations
        looks = T, num_looks(schedule.num_steps), chains.num_particles
        return cls(*(jnp.full(shape, jnp.nan, seen.dtype) for shape in (*[(T,)] * 4, looks, (*looks, *seen.shape))))


class StrideTarget(NamedTuple):
    """What STRIDE works on: the GP it begins with, the posterior of the hidden layers, chains that explore it."""

    initial: Initial
    hidden: AbstractHiddenMethod
    posterior: Posterior
    chains: Chains
    iterations: Int[Array, ""]
    """As many as led here, those of fits that this one goes on from included."""
    record: Record | None = None
    """Of this fit; None before it begins."""

    @property
    def hidden_widths(self) -> tuple[int, ...]:
        """The number of outputs of every hidden layer."""
        one = jax.tree.map(lambda leaf: leaf[0], self.chains.position)
        return tuple(leaf.shape[-1] for leaf in self.posterior.top.split(one)[1])


class EMState(NamedTuple):
    """`moving` is what changes of the posterior."""

    trainable: PyTree
    moving: Posterior
    chains: Chains
    iterations: Int[Array, ""]
    record: Record


class MonteCarloEM(AbstractEngine):
    """Expectation (steps of every chain) and maximisation (inducing points, hyperparameters) in turn.

    A step is one iteration. Groups of chains run side by side in threads, outside a program.
    """

    needs_all_rows: ClassVar[bool] = True

    sampler: AbstractSampler = PCN()
    schedule: Schedule = eqx.field(static=True, default=Schedule())
    start_scale: float = eqx.field(static=True, default=START_SCALE)
    steps_per_call: int = eqx.field(static=True, default=1)

    @property
    def max_steps(self) -> int:
        return self.schedule.num_iterations

    def init(self, problem, key):
        """Chains start at different draws: as proposals of scale `start_scale` from where the top layer is stationary.

        A draw whose likelihood isn't finite starts there itself.
        """
        target = problem.target
        if not isinstance(target, StrideTarget):
            raise InputTypeError('MonteCarloEM samples hidden layers: use it with inference="stride".')
        posterior, given, begun = target.posterior, target.chains, target.iterations > 0
        at_once = self.schedule.at_once(posterior, given.num_particles)
        drawn = crank_nicolson(given.position, normal_like(given.position, key), jnp.asarray(self.start_scale))
        spread = restart(posterior, drawn, given.scale, at_once)
        stay = begun | ~jnp.isfinite(spread.log_likelihood)
        position, log_likelihood = choose(
            stay, (given.position, given.log_likelihood), (spread.position, spread.log_likelihood)
        )
        chains = Chains(position, log_likelihood, given.scale)
        record = Record.empty(self.schedule, posterior, given)
        return EMState(problem.trainable(), posterior.moving(), chains, target.iterations, record)

    def step(self, problem, state, key, step):
        target, schedule = problem.target, self.schedule
        posterior, number = eqx.combine(state.moving, target.posterior), target.iterations + step
        at_once = schedule.at_once(posterior, state.chains.num_particles)
        key_chains, key_rows = jr.split(jr.fold_in(key, number))
        chains, seen = sample(
            posterior, state.chains, key_chains, self.sampler, adapting=number < schedule.warm_up_iterations,
            num_steps=schedule.num_steps, at_once=at_once,
        )  # fmt: skip
        settings = Maximisation.of(schedule, target.hidden, target.initial, at_once)
        improved = maximise(posterior, chains, settings, key_rows)
        between = schedule.num_steps // num_looks(schedule.num_steps)
        values = (
            jnp.mean(seen.accepted), jnp.sum(~jnp.any(seen.accepted, axis=0)), improved.bound, improved.exchanged,
            seen.log_likelihood[between - 1 :: between], seen.looks.f,
        )  # fmt: skip
        record = Record(*(old.at[step].set(new) for old, new in zip(state.record, values, strict=True)))
        state = EMState(state.trainable, improved.posterior.moving(), improved.chains, number + 1, record)
        objective = jnp.mean(seen.log_likelihood)
        return state, Info(objective, jnp.zeros(()), jnp.max(seen.looks.jitter), jnp.zeros((), bool))

    def advance(self, problem, state, key, start, end):
        """One iteration."""
        new, info = self.step(problem, state, key, jnp.asarray(start))
        accepted = bool(jnp.isfinite(info.objective))
        infos = jax.tree.map(lambda value: np.asarray(value)[None], info)
        return new if accepted else state, infos, np.asarray([accepted])

    def retreat(self, state):
        return state

    def target(self, problem, state: Any) -> StrideTarget:
        posterior = eqx.combine(state.moving, problem.target.posterior)
        return problem.target._replace(
            posterior=posterior, chains=state.chains, iterations=state.iterations, record=state.record
        )
