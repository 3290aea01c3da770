"""One exchange of an inducing point: closed forms against direct evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax

from dgpax.kernels import RBF
from dgpax.stride import Stationary, collapsed_bound, exchange_rows

from ._record import Record


def run_gains(cases: list[tuple[int, int, int]]) -> list[Record]:
    """Seconds of one exchange, by the closed forms and by evaluating F_V for every removal and every candidate."""
    records: list[Record] = []
    covariance, noise = Stationary(RBF(1.0, 1.0)), jnp.asarray(0.1)
    for n, m, candidates in cases:
        x = jr.normal(jr.key(0), (n, 4))
        y = jnp.sin(2 * x[:, :1]) + 0.3 * jr.normal(jr.key(1), (n, 1))
        rows = jnp.arange(m)

        def closed(x=x, y=y, rows=rows, candidates=candidates):
            return exchange_rows(
                covariance, x[None], y, noise, jnp.ones(x.shape[0], bool), rows,
                num_exchanges=1, num_candidates=candidates, particles_at_once=1, key=jr.key(2),
            )  # fmt: skip

        def direct(x=x, y=y, rows=rows, some=rows[-1] + 1 + jnp.arange(candidates)):  # noqa: B008
            return _direct_exchange(covariance, x, y, noise, rows, some)

        seconds, seconds_direct = _seconds(closed, 5), _seconds(direct, 1)
        names = {"kind": "gains", "rows": n, "inducing": m, "candidates": candidates}
        records.append(
            names
            | {"seconds": seconds, "seconds_direct": seconds_direct, "speedup": seconds_direct / seconds}
            | {"exponent": None, "exponent_direct": None}
        )
    return records


def with_exponents(records: list[Record]) -> list[Record]:
    """The same; the last record also has the powers of the inducing points by which the seconds grow from the first."""
    first, last = records[0], records[-1]

    def exponent(key: str) -> float:
        return float(np.log(float(last[key] or 0) / float(first[key] or 0))) / grown

    grown = float(np.log(float(last["inducing"] or 0) / float(first["inducing"] or 0)))
    return [*records[:-1], last | {"exponent": exponent("seconds"), "exponent_direct": exponent("seconds_direct")}]


@eqx.filter_jit
def _direct_exchange(covariance, x, y, noise, rows, candidates):
    m = rows.shape[0]

    def without(i):
        return jnp.where(jnp.arange(m - 1) < i, rows[:-1], rows[1:])

    def bound(some):
        return collapsed_bound(covariance, x, some, y, noise)

    kept = without(jnp.argmax(lax.map(lambda i: bound(without(i)), jnp.arange(m))))
    best = jnp.argmax(lax.map(lambda j: bound(jnp.append(kept, j)), candidates))
    return jnp.append(kept, candidates[best])


def _seconds(run: Callable, repetitions: int) -> float:
    jax.block_until_ready(run())
    times = []
    for _ in range(repetitions):
        started = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - started)
    return float(np.median(times))
