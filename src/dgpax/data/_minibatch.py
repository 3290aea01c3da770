"""Minibatches as a pure function of (key, step), and a random hold-out."""

from __future__ import annotations

import dataclasses
import math
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax

from ..errors import InputError
from ..typing import Array, Int, RandomKey, Shaped
from ._dataset import Dataset

_ROUNDS = 16


def minibatch(data: Dataset, seed_key: RandomKey, step: Int[Array, ""] | int, size: int) -> Dataset:
    """The batch of this step: `size` rows, with `scale` = N / size.

    Epochs are without replacement: each has floor(N / size) batches of distinct rows, in a new order; the N mod size
    rows that are left over differ from epoch to epoch. A size of N or more gives all rows, in their own order.
    """
    if size >= data.num_rows:
        return data
    rows = batch_indices(seed_key, step, size, data.num_rows)
    return dataclasses.replace(data.take(rows), scale=data.scale * (data.num_rows / size), rows=rows)


@partial(jax.jit, static_argnames=("size", "num_rows"))
def batch_indices(key: RandomKey, step: Int[Array, ""] | int, size: int, num_rows: int) -> Int[Array, " B"]:
    """The row numbers of this step's batch, in time and memory that don't depend on `num_rows`."""
    if not 1 <= size <= num_rows:
        raise InputError(f"A batch needs between 1 and {num_rows} (the number of rows) rows; got size={size}.")
    unsigned, signed = _index_dtypes(num_rows)
    epoch, batch = jnp.divmod(jnp.asarray(step).astype(unsigned), num_rows // size)
    positions = batch * size + jnp.arange(size, dtype=unsigned)
    return _permute(positions, jr.fold_in(key, epoch), num_rows).astype(signed)


def split(data: Dataset, fraction: float, key: RandomKey) -> tuple[Dataset, Dataset]:
    """(train, test): `fraction` of the rows, drawn at random, are the test set; both keep the order of the rows."""
    num_test = round(fraction * data.num_rows)
    if not 0 < num_test < data.num_rows:
        raise InputError(
            f"split(fraction={fraction}) of {data.num_rows} rows would leave {data.num_rows - num_test} for training "
            f"and {num_test} for testing; both need at least 1."
        )
    order = jr.permutation(key, data.num_rows)
    return data.take(jnp.sort(order[num_test:])), data.take(jnp.sort(order[:num_test]))


def _index_dtypes(num_rows: int):
    if num_rows < 2**31:
        return jnp.uint32, jnp.int32
    if jnp.result_type(int) == jnp.int32:
        raise InputError(f"{num_rows} rows need 64-bit indices: set JAX_ENABLE_X64=1.")
    return jnp.uint64, jnp.int64


def _permute(positions: Shaped[Array, " B"], key: RandomKey, num_rows: int) -> Shaped[Array, " B"]:
    """A keyed permutation of {0, …, N-1}, evaluated at some positions only.

    The generalised Feistel cipher on Z_a × Z_b [Black & Rogaway 2002, "Ciphers with arbitrary finite domains",
    method 3], with a = ⌈√N⌉ and b = ⌈N/a⌉, hence ab < N + a; values of N or more are enciphered again until they are
    below N (cycle walking, method 2), which so few need that the loop ends after a handful of turns. Large N would do
    with six rounds; sixteen make the orders of N ≤ 6 rows (nearly) equally likely too. With more rows, even
    permutations can be likelier than odd ones, which nothing short of a whole epoch can tell.
    """
    a = math.isqrt(num_rows - 1) + 1
    b = -(-num_rows // a)
    round_keys = jr.bits(key, (_ROUNDS,), jnp.uint32)

    def encipher(value):
        left, right = value % a, value // a
        for round_key, modulus in zip(round_keys, [a, b] * (_ROUNDS // 2), strict=True):
            noise = _mix(right.astype(jnp.uint32) ^ round_key).astype(value.dtype)
            left, right = right, (left + noise % modulus) % modulus
        return a * right + left

    def walk(carry):
        values, outside = carry
        values = jnp.where(outside, encipher(values), values)
        return values, values >= num_rows

    everywhere = jnp.ones(positions.shape, bool)
    values, _ = lax.while_loop(lambda carry: jnp.any(carry[1]), walk, (positions, everywhere))
    return values


def _mix(word):
    """Scramble 32 bits: the finaliser of MurmurHash3 (Appleby, public domain)."""
    for shift, multiplier in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        word = (word ^ (word >> shift)) * jnp.uint32(multiplier)
    return word ^ (word >> 16)
