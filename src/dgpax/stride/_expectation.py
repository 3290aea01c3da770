"""The expectation step: groups of chains, side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax

from ..programs import compiled
from ..typing import Array, Bool, Float, Int, RandomKey
from ._problem import Look, Posterior, largest_divisor
from ._samplers import AbstractSampler, Chains, run_chains

ENTRIES_SIDE_BY_SIDE = 25_000_000
"""Covariances of all groups that run at the same time: 200 MB in float64."""
MOST_LOOKS, MOST_WATCHED_ROWS = 10, 20


class Seen(NamedTuple):
    """An expectation step as it was: of every step whether chains moved, and looks at them now and then."""

    accepted: Bool[Array, "T S"]
    log_likelihood: Float[Array, "T S"]
    looks: Look


class Workers:
    """Threads for calls of one compiled function: as many as there are cores, one if an accelerator does the work.

    Calls that take much memory, by the numbers in their covariances, get fewer of them.
    """

    def __init__(self, num_entries: int):
        num_cores = _num_cores() if jax.default_backend() == "cpu" else 1
        num_threads = min(num_cores, max(1, ENTRIES_SIDE_BY_SIDE // num_entries))
        self._pool = ThreadPoolExecutor(num_threads, thread_name_prefix="dgpax")

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error) -> None:
        self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable, items: Sequence) -> list:
        """The function of every item."""
        return list(self._pool.map(function, items))


def sample(
    posterior: Posterior,
    chains: Chains,
    key: RandomKey,
    sampler: AbstractSampler,
    *,
    adapting: Bool[Array, ""],
    num_steps: int,
    at_once: int,
) -> tuple[Chains, Seen]:
    """Steps of all chains [STRIDE, section 3.1]: `at_once` of them in one program, programs side by side.

    Groups adapt their proposals on their own and start the next time from the geometric mean of their scales. So what
    comes out depends on the size of the groups and not on the number of threads.
    """
    count = chains.num_particles // at_once
    if count == 1:
        return _steps(posterior, chains, key, sampler, adapting, num_steps)

    def group(index: int):
        rows = slice(index * at_once, (index + 1) * at_once)
        position = jax.tree.map(lambda leaf: leaf[rows], chains.position)
        own = Chains(position, chains.log_likelihood[rows], chains.scale)
        return jax.block_until_ready(_steps(posterior, own, jr.fold_in(key, index), sampler, adapting, num_steps))

    with Workers(at_once * posterior.num_entries) as workers:
        moved, seen = zip(*workers.map(group, range(count)), strict=True)
    position, log_likelihood = jax.tree.map(
        lambda *leaves: jnp.concatenate(leaves), *((own.position, own.log_likelihood) for own in moved)
    )
    scale = jnp.exp(jnp.mean(jnp.log(jnp.stack([own.scale for own in moved]))))
    return Chains(position, log_likelihood, scale), jax.tree.map(lambda *leaves: jnp.concatenate(leaves, 1), *seen)


def num_looks(num_steps: int) -> int:
    """How often predictions are looked at in one expectation step."""
    return largest_divisor(num_steps, MOST_LOOKS)


def watched_rows(num_rows: int) -> Int[Array, " R"]:
    """The rows at which predictions are looked at: a few, evenly over the data."""
    return jnp.asarray(np.linspace(0, num_rows - 1, min(MOST_WATCHED_ROWS, num_rows)).round().astype(int))


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@compiled
def _steps(posterior: Posterior, chains: Chains, key: RandomKey, sampler: AbstractSampler, adapting, num_steps: int):
    log_likelihood, rows = jax.vmap(posterior.log_likelihood), watched_rows(posterior.y.shape[0])

    def between_looks(chains, own_key):
        chains, info = run_chains(
            sampler, chains, log_likelihood, own_key, num_steps=num_steps // num_looks(num_steps), adapting=adapting
        )
        return chains, (info, jax.vmap(lambda whitened: posterior.look(whitened, rows))(chains.position))

    chains, (info, looks) = lax.scan(between_looks, chains, jr.split(key, num_looks(num_steps)))
    accepted, log_likelihoods = (leaf.reshape(num_steps, -1) for leaf in info)
    return chains, Seen(accepted, log_likelihoods, looks)
