"""The expectation step: groups of chains, side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from ..typing import RandomKey
from ._problem import Posterior
from ._samplers import AbstractSampler, Chains, StepInfo, run_chains

ENTRIES_SIDE_BY_SIDE = 25_000_000
"""Covariances of all groups that run at the same time: 200 MB in float64."""


class Workers:
    """Threads for calls of one compiled function: as many as there are cores, one if an accelerator does the work.

    Calls that take much memory, by the numbers in their covariances, get fewer of them.
    """

    def __init__(self, num_entries: int):
        num_cores = _num_cores() if jax.default_backend() == "cpu" else 1
        num_threads = min(num_cores, max(1, ENTRIES_SIDE_BY_SIDE // num_entries))
        self._pool = ThreadPoolExecutor(num_threads, thread_name_prefix="dgpax")
        self._compiled = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error) -> None:
        self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable, items: Sequence) -> list:
        """The first call of all is waited for, so that the others find it compiled."""
        first = [] if self._compiled else [function(items[0])]
        self._compiled = True
        return [*first, *self._pool.map(function, items[len(first) :])]


def sample(
    posterior: Posterior,
    chains: Chains,
    key: RandomKey,
    sampler: AbstractSampler,
    *,
    adapting: bool,
    num_steps: int,
    at_once: int,
    workers: Workers,
) -> tuple[Chains, StepInfo]:
    """Steps of all chains [STRIDE, section 3.1]: `at_once` of them in one program, programs side by side.

    Groups adapt their proposals on their own and start the next time from the geometric mean of their scales. So what
    comes out depends on the size of the groups and not on the number of threads.
    """
    count = chains.num_particles // at_once
    if count == 1:
        return _steps(posterior, chains, key, sampler, jnp.asarray(adapting), num_steps)

    def group(index: int):
        rows = slice(index * at_once, (index + 1) * at_once)
        position = jax.tree.map(lambda leaf: leaf[rows], chains.position)
        own = Chains(position, chains.log_likelihood[rows], chains.scale)
        moved = _steps(posterior, own, jr.fold_in(key, index), sampler, jnp.asarray(adapting), num_steps)
        return jax.block_until_ready(moved)

    moved, infos = zip(*workers.map(group, range(count)), strict=True)
    position, log_likelihood = jax.tree.map(
        lambda *leaves: jnp.concatenate(leaves), *((own.position, own.log_likelihood) for own in moved)
    )
    scale = jnp.exp(jnp.mean(jnp.log(jnp.stack([own.scale for own in moved]))))
    return Chains(position, log_likelihood, scale), jax.tree.map(lambda *leaves: jnp.concatenate(leaves, 1), *infos)


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@eqx.filter_jit
def _steps(posterior: Posterior, chains: Chains, key: RandomKey, sampler: AbstractSampler, adapting, num_steps: int):
    log_likelihood = jax.vmap(posterior.log_likelihood)
    return run_chains(sampler, chains, log_likelihood, key, num_steps=num_steps, adapting=adapting)
