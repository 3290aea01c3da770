"""The maximisation step: inducing points chosen from the rows of the data, for all particles together."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax

from ..programs import compiled
from ..typing import Array, Bool, Float, Int, PyTree, RandomKey, Scalar
from ._bound import factorise
from ._covariance import AbstractCovariance
from ._gains import addition_gains, new_columns, removal_gains

MAX_ENTRIES = {"cpu": 5_000_000}
"""Covariances between rows and candidates at a time: 40 MB in float64."""
MAX_ENTRIES_ON_ACCELERATORS = 50_000_000


@compiled
def greedy_rows(
    covariance: AbstractCovariance,
    features: Float[Array, "S N E"],
    y: Float[Array, "N P"],
    noise_variance: Scalar,
    selectable: Bool[Array, " N"],
    *,
    num_inducing: int,
    num_candidates: int,
    key: RandomKey,
) -> Int[Array, " M"]:
    """Rows that raise Σ_s F_V the most, one after the other, from a new random set of candidates each [section 3.2]."""
    S, N, _ = features.shape

    def add(carry, step_and_key):
        rows, A, left = carry
        step, step_key = step_and_key
        candidates = draw_candidates(left, num_candidates, step_key)

        def gains(particle):
            f, factor = particle
            return _gains_in_parts(covariance, f, factor, candidates, y, noise_variance)

        total = jnp.sum(lax.map(gains, (features, A)), axis=0)
        chosen = candidates[jnp.argmax(jnp.where(left[candidates], total, -jnp.inf))]
        column, free = jax.vmap(lambda f, a: new_columns(covariance, f, a, chosen[None]))(features, A)
        A = A.at[:, :, step].set(jnp.where(free, column[:, :, 0], 0.0))
        return (rows.at[step].set(chosen), A, left.at[chosen].set(False)), None

    start = (jnp.zeros(num_inducing, int), jnp.zeros((S, N, num_inducing), features.dtype), selectable)
    steps = (jnp.arange(num_inducing), jr.split(key, num_inducing))
    return lax.scan(add, start, steps)[0][0]


@compiled
def exchange_rows(
    covariance: AbstractCovariance,
    features: Float[Array, "S N E"],
    y: Float[Array, "N P"],
    noise_variance: Scalar,
    selectable: Bool[Array, " N"],
    rows: Int[Array, " M"],
    *,
    num_exchanges: int,
    num_candidates: int,
    particles_at_once: int,
    key: RandomKey,
) -> Int[Array, " M"]:
    """Birth and death: the point that is missed least goes, the best of the candidates comes [STRIDE, Algorithm 2].

    The point that went is always a candidate too, so that Σ_s F_V never falls.
    """
    total_over = particle_sum(features, particles_at_once)

    def exchange(rows, step_key):
        def losses(f):
            return removal_gains(factorise(covariance, f, rows, y, noise_variance), noise_variance)

        position = jnp.argmax(total_over(losses))
        kept = jnp.where(jnp.arange(rows.shape[0] - 1) < position, rows[:-1], rows[1:])
        left = selectable.at[kept].set(False)
        drawn = draw_candidates(left, num_candidates, step_key)
        candidates = jnp.concatenate([drawn, rows[position][None]])

        def gains(f):
            A = factorise(covariance, f, kept, y, noise_variance).A
            return _gains_in_parts(covariance, f, A, candidates, y, noise_variance)

        best = jnp.argmax(jnp.where(left[candidates], total_over(gains), -jnp.inf))
        return jnp.append(kept, candidates[best]), None

    return lax.scan(exchange, rows, jr.split(key, num_exchanges))[0]


def particle_sum(particles: PyTree, at_once: int) -> Callable[[Callable], Float[Array, " K"]]:
    """Σ_s function(particle s), some particles at a time."""

    def total(function):
        return jnp.sum(lax.map(function, particles, batch_size=at_once), axis=0)

    return total


def draw_candidates(left: Bool[Array, " N"], num_candidates: int, key: RandomKey) -> Int[Array, " J"]:
    """Random rows of those that are left, without repetition; the others follow only if these don't suffice."""
    N = left.shape[0]
    if num_candidates >= N:
        return jnp.arange(N)
    order = jr.uniform(key, (N,)) + jnp.where(left, 0.0, 1.0)
    return lax.top_k(-order, num_candidates)[1]


def _gains_in_parts(covariance, features, A, candidates, y, noise_variance) -> Float[Array, " J"]:
    """Gains of all candidates, with covariances of at most MAX_ENTRIES at a time."""
    entries = MAX_ENTRIES.get(jax.default_backend(), MAX_ENTRIES_ON_ACCELERATORS)
    J, at_once = candidates.shape[0], max(1, entries // features.shape[0])
    if at_once >= J:
        return addition_gains(covariance, features, A, candidates, y, noise_variance)
    padded = jnp.concatenate([candidates, jnp.broadcast_to(candidates[-1], (-J % at_once,))])

    def part(some):
        return addition_gains(covariance, features, A, some, y, noise_variance)

    return lax.map(part, padded.reshape(-1, at_once)).reshape(-1)[:J]
