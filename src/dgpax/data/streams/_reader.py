"""Blocks of batches, the next one read in a thread while a program works on this one."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ...typing import Array, Float, Int, RandomKey
from .._minibatch import batch_indices
from ._source import Table


class Block(NamedTuple):
    """The batches of K steps in a row, from step `first` on."""

    first: Int[Array, ""]
    x: Float[Array, "K B D"]
    y: Float[Array, "K B P"]
    rows: Int[Array, "K B"]


class Request(NamedTuple):
    """Which block is wanted; `key` as its bytes."""

    key: bytes
    start: int
    count: int


class Reader:
    """Reads what is asked for, then what follows it. Mutable, and one per stream."""

    def __init__(self, table: Table, batch_size: int):
        self.table, self.batch_size = table, batch_size
        self._thread = ThreadPoolExecutor(1, "dgpax stream")
        self._ahead: tuple[Request, Future[Block]] | None = None

    def block(self, key: RandomKey, start: int, count: int) -> Block:
        """The batches of `count` steps. An error of the source is raised here."""
        data = np.asarray(jr.key_data(key)).tobytes()
        wanted, ahead = Request(data, start, count), self._ahead
        self._ahead = None
        block = ahead[1].result() if ahead and ahead[0] == wanted else self._read(key, start, count)
        following = wanted._replace(start=start + count)
        self._ahead = following, self._thread.submit(self._read, key, following.start, count)
        return block

    def _read(self, key: RandomKey, start: int, count: int) -> Block:
        num_rows = self.table.source.num_rows
        rows = np.asarray(_rows_of(key, jnp.arange(start, start + count), self.batch_size, num_rows))
        x, y = self.table.read(rows.ravel().astype(np.int64))
        x, y = (jnp.asarray(part.reshape(*rows.shape, -1)) for part in (x, y))
        return Block(jnp.asarray(start), x, y, jnp.asarray(rows))


@partial(jax.jit, static_argnames=("size", "num_rows"))
def _rows_of(key: RandomKey, steps: Int[Array, " K"], size: int, num_rows: int) -> Int[Array, "K B"]:
    return jax.vmap(lambda step: batch_indices(key, step, size, num_rows))(steps)
