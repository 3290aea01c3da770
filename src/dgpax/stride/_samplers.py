"""Markov chains that leave exp(log-likelihood) · N(0, I) invariant, for all particles at once."""

import abc
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax

from ..errors import InputError
from ..typing import Array, Bool, Float, PyTree, RandomKey

LogLikelihood = Callable[[PyTree[Float[Array, "S ..."]]], Float[Array, " S"]]


class Chains(eqx.Module):
    """One chain per particle: positions with a leading axis S, their log-likelihoods, the scale of the proposals."""

    position: PyTree[Float[Array, "S ..."]]
    log_likelihood: Float[Array, " S"]
    scale: Float[Array, ""]

    @property
    def num_particles(self) -> int:
        return self.log_likelihood.shape[0]


class StepInfo(NamedTuple):
    """What a step did to every chain: moved or not, and how much of an evaluation it took."""

    accepted: Bool[Array, " S"]
    log_likelihood: Float[Array, " S"]


class AbstractSampler(eqx.Module):
    """A Markov chain on whitened variables. A position whose likelihood isn't finite is never moved to."""

    @property
    @abc.abstractmethod
    def initial_scale(self) -> float:
        """Where the scale of the proposals starts."""

    @abc.abstractmethod
    def step(self, chains: Chains, log_likelihood: LogLikelihood, key: RandomKey) -> tuple[Chains, StepInfo]:
        """One step of every chain."""

    @abc.abstractmethod
    def adapt(self, scale: Float[Array, ""], accepted: Bool[Array, " S"]) -> Float[Array, ""]:
        """The scale after a step of the warm-up; afterwards it is frozen, as a valid sampler needs."""


class PCN(AbstractSampler):
    """Preconditioned Crank–Nicolson: ξ′ = √(1 − β²) ξ + β w, accepted by the likelihood alone [Cotter et al. 2013].

    During the warm-up log β follows the acceptance rate over all particles to its target.
    """

    proposal_scale: float = eqx.field(static=True, default=0.1)
    target_acceptance: float = eqx.field(static=True, default=0.25)
    adaptation_rate: float = eqx.field(static=True, default=0.2)

    def __check_init__(self):
        if not 0 < self.proposal_scale <= 1 or not 0 < self.target_acceptance < 1:
            raise InputError(
                "PCN needs 0 < proposal_scale ≤ 1 and 0 < target_acceptance < 1; got "
                f"{self.proposal_scale} and {self.target_acceptance}."
            )

    @property
    def initial_scale(self):
        return self.proposal_scale

    def step(self, chains, log_likelihood, key):
        key_noise, key_accept = jr.split(key)
        proposal = crank_nicolson(chains.position, normal_like(chains.position, key_noise), chains.scale)
        new = finite_or_never(log_likelihood(proposal))
        threshold = jnp.log(jr.uniform(key_accept, new.shape, new.dtype))
        accepted = threshold < new - chains.log_likelihood
        log_likelihoods = jnp.where(accepted, new, chains.log_likelihood)
        moved = Chains(choose(accepted, proposal, chains.position), log_likelihoods, chains.scale)
        return moved, StepInfo(accepted, log_likelihoods)

    def adapt(self, scale, accepted):
        surplus = jnp.mean(accepted.astype(scale.dtype)) - self.target_acceptance
        return jnp.minimum(scale * jnp.exp(self.adaptation_rate * surplus), 1.0)


class EllipticalSlice(AbstractSampler):
    """Elliptical slice sampling: nothing to tune, a few likelihoods a step [Murray, Adams & MacKay 2010, figure 2].

    All chains shrink their brackets together until the last has found a point; one that hasn't after `max_shrinks`
    stays where it is.
    """

    max_shrinks: int = eqx.field(static=True, default=50)

    @property
    def initial_scale(self):
        return 1.0

    def step(self, chains, log_likelihood, key):
        key_noise, key_level, key_angle, key_shrink = jr.split(key, 4)
        noise = normal_like(chains.position, key_noise)
        old = chains.log_likelihood
        level = old + jnp.log(jr.uniform(key_level, old.shape, old.dtype))
        angle = 2.0 * jnp.pi * jr.uniform(key_angle, old.shape, old.dtype)

        def point(angle):
            def rotate(xi, w):
                along = (slice(None), *[None] * (xi.ndim - 1))
                return jnp.cos(angle)[along] * xi + jnp.sin(angle)[along] * w

            return jax.tree.map(rotate, chains.position, noise)

        def unfinished(carry):
            shrinks, _, _, _, _, found = carry
            return (shrinks < self.max_shrinks) & ~jnp.all(found)

        def shrink(carry):
            shrinks, angle, low, high, best, found = carry
            new = finite_or_never(log_likelihood(point(angle)))
            best = jnp.where(found, best, new)
            hit = found | (new > level)
            low = jnp.where(~hit & (angle < 0), angle, low)
            high = jnp.where(~hit & (angle >= 0), angle, high)
            uniform = jr.uniform(jr.fold_in(key_shrink, shrinks), angle.shape, angle.dtype)
            return shrinks + 1, jnp.where(hit, angle, low + (high - low) * uniform), low, high, best, hit

        start = (0, angle, angle - 2.0 * jnp.pi, angle, old, jnp.zeros(old.shape, bool))
        _, angle, _, _, new, found = lax.while_loop(unfinished, shrink, start)
        position = choose(found, point(angle), chains.position)
        log_likelihoods = jnp.where(found, new, old)
        return Chains(position, log_likelihoods, chains.scale), StepInfo(found, log_likelihoods)

    def adapt(self, scale, accepted):
        return scale


def run_chains(
    sampler: AbstractSampler,
    chains: Chains,
    log_likelihood: LogLikelihood,
    key: RandomKey,
    *,
    num_steps: int,
    adapting: bool | Bool[Array, ""],
) -> tuple[Chains, StepInfo]:
    """Steps of all chains, and what each step did, [steps, S]."""

    def step(chains, step_key):
        moved, info = sampler.step(chains, log_likelihood, step_key)
        scale = jnp.where(adapting, sampler.adapt(moved.scale, info.accepted), moved.scale)
        return Chains(moved.position, moved.log_likelihood, scale), info

    return lax.scan(step, chains, jr.split(key, num_steps))


def crank_nicolson(position: PyTree, noise: PyTree, scale: Float[Array, ""]) -> PyTree:
    """√(1 − β²) ξ + β w: a scale β of 0 stays, one of 1 goes to the noise."""
    return jax.tree.map(lambda xi, w: jnp.sqrt(1.0 - scale**2) * xi + scale * w, position, noise)


def normal_like(tree: PyTree, key: RandomKey) -> PyTree:
    """Standard normal variables of the shapes and dtypes of a tree, drawn in 32 bits: a third of the time of 64."""
    leaves, structure = jax.tree.flatten(tree)
    keys = jr.split(key, len(leaves))
    drawn = [jr.normal(k, leaf.shape, jnp.float32).astype(leaf.dtype) for k, leaf in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(structure, drawn)


def finite_or_never(log_likelihood: Float[Array, " S"]) -> Float[Array, " S"]:
    """−∞, which is never accepted, where a likelihood isn't finite."""
    return jnp.where(jnp.isfinite(log_likelihood), log_likelihood, -jnp.inf)


def choose(condition: Bool[Array, " S"], first: PyTree, second: PyTree) -> PyTree:
    """The first tree for the particles where the condition holds, the second for the others."""

    def pick(a, b):
        return jnp.where(condition[(slice(None), *[None] * (a.ndim - 1))], a, b)

    return jax.tree.map(pick, first, second)
