"""Several processes as one: the same `fit` in each, its rows shared out among their devices.

Parameters and states are the same everywhere; sums over rows are taken in parallel and added up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from .errors import DistributedError, InputError

ROWS = "rows"
LOST = ("Gloo", "NCCL", "UNAVAILABLE")
"""What is in JAX's errors about a network or a process that is gone."""
HEARTBEAT_SECONDS = 20
"""After which a process that says nothing counts as lost."""

_sharing: ContextVar[Mesh | None] = ContextVar("sharing", default=None)
_programs: dict[Any, Callable] = {}


def initialize(
    coordinator_address: str | None = None, num_processes: int | None = None, process_id: int | None = None
) -> None:
    """Join the other processes, before anything is computed: then call the same `fit` in each.

    Without arguments, SLURM, Open MPI, Kubernetes or the environment say who they are, as for
    `jax.distributed.initialize`; else give the address (host:port) of process 0, how many there are, and which one this
    is. Each must name the same data. Progress is shown and checkpoints are written by process 0 only.
    """
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(
            coordinator_address, num_processes, process_id, heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            shutdown_timeout_seconds=HEARTBEAT_SECONDS,
        )  # fmt: skip
    except (ValueError, RuntimeError) as error:
        raise InputError(
            f"The processes can't be joined: {error} Call dgpax.distributed.initialize() first of all, once, in each "
            "process, with coordinator_address, num_processes and process_id where nothing else says what they are."
        ) from error


def mesh() -> Mesh | None:
    """All devices of all processes in a row; None if there is one process."""
    return _all_devices() if jax.process_count() > 1 else None


@cache
def _all_devices() -> Mesh:
    return Mesh(np.array(jax.devices()), (ROWS,), axis_types=(AxisType.Auto,))


def leads() -> bool:
    """Whether this is the process that writes and shows."""
    return jax.process_index() == 0


def everywhere(tree: Any) -> Any:
    """Arrays of this process, the same in all, as arrays of all devices."""
    whole = mesh()
    if whole is None:
        return tree
    sharding = NamedSharding(whole, PartitionSpec())

    def spread(leaf):
        if not eqx.is_array(leaf) or not leaf.is_fully_addressable:
            return leaf
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jr.wrap_key_data(spread(jr.key_data(leaf)), impl=jr.key_impl(leaf))
        copies = [jax.device_put(leaf, device) for device in jax.local_devices()]
        return jax.make_array_from_single_device_arrays(leaf.shape, sharding, copies)

    return jax.tree.map(spread, tree)


def here(tree: Any) -> Any:
    """Arrays of all devices that are the same on each, as this process has them."""
    return jax.tree.map(
        lambda leaf: leaf.addressable_data(0) if eqx.is_array(leaf) and not leaf.is_fully_addressable else leaf, tree
    )


@contextmanager
def sharing(whole: Mesh | None) -> Iterator[None]:
    """What is traced here takes its sums over rows in parallel."""
    token = _sharing.set(whole)
    try:
        yield
    finally:
        _sharing.reset(token)


def shared_by() -> Mesh | None:
    """The devices among which rows are shared out, in what is being traced."""
    return _sharing.get()


def together(function: Callable, *arguments: Any) -> Any:
    """A function as a program of all processes, called when the last has compiled it.

    Processes that wait for a slower one inside of a program would give up on it.
    """
    arguments = everywhere(arguments)
    leaves, structure = jax.tree.flatten(arguments)
    key = function, structure, tuple(jax.typeof(leaf) if eqx.is_array(leaf) else leaf for leaf in leaves)
    with _saying_who_is_gone():
        if key not in _programs:
            _programs[key] = eqx.filter_jit(function).lower(*arguments).compile()
            wait_for_all("compiled")
        return here(jax.block_until_ready(_programs[key](*arguments)))


def wait_for_all(what: str) -> None:
    """Until every process is here."""
    if mesh() is not None:
        multihost_utils.sync_global_devices(what)


def any_of_all(flag: bool) -> bool:
    """Whether it is so in any process."""
    if mesh() is None:
        return flag
    with _saying_who_is_gone():
        return bool(np.any(multihost_utils.process_allgather(np.asarray(flag))))


def refuse_differences(parts: dict[str, str]) -> None:
    """An error if a fingerprint isn't the same in all processes."""
    if mesh() is None:
        return
    own = np.array([[int(digest[i : i + 8], 16) for i in range(0, 32, 8)] for digest in parts.values()], np.int64)
    others = np.asarray(multihost_utils.process_allgather(own))
    differing = [name for place, name in enumerate(parts) if np.any(others[:, place] != others[:1, place])]
    if differing:
        who = int(np.argmax(np.any(others != others[:1], axis=(1, 2))))
        raise InputError(
            f"Process {who} was given another {', another '.join(differing)} than process 0. All processes must call "
            "fit with the same."
        )


@contextmanager
def _saying_who_is_gone() -> Iterator[None]:
    try:
        yield
    except (RuntimeError, ValueError) as error:
        if not any(sign in str(error) for sign in LOST):
            raise
        raise DistributedError(
            f"Process {jax.process_index()} lost another process of this fit: it was killed, or the network between "
            "them is down. Start all again: with fit(checkpoint=...) they go on where the last checkpoint is, in any "
            "number."
        ) from error
