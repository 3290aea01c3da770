"""Inducing locations chosen one by one from the rows of the data."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..kernels import AbstractKernel
from ..linalg import einsum, matmul, safe_cholesky, solve_lower
from ..programs import compiled
from ..typing import Array, Float, Int
from ._kmeans import at_most_distinct

TOLERANCE = 1e-10


class _Pivots(NamedTuple):
    """A pivoted Cholesky in progress: `factor` rows are A = L⁻¹ K_mn, `residual` the conditional variances.

    The residual of a chosen row is −1, so that no row is chosen twice, even where all variance is explained.
    """

    chosen: Int[Array, " M"]
    factor: Float[Array, "M N"]
    residual: Float[Array, " N"]


def _pivot(state: _Pivots, kernel: AbstractKernel, x, step, index) -> _Pivots:
    """Add row `index`: one more row of the factor, O(N·M)."""
    row = kernel.cross(x[index][None], x)[0] - einsum("m,mn->n", state.factor[:, index], state.factor)
    row = row / jnp.sqrt(jnp.maximum(state.residual[index], TOLERANCE))
    left = jnp.maximum(state.residual - row**2, 0.0)
    residual = jnp.where(state.residual < 0, state.residual, left).at[index].set(-1.0)
    return _Pivots(state.chosen.at[step].set(index), state.factor.at[step].set(row), residual)


def _start(kernel: AbstractKernel, x, num_inducing: int) -> _Pivots:
    dtype = jnp.result_type(x)
    factor = jnp.zeros((num_inducing, x.shape[0]), dtype)
    return _Pivots(jnp.zeros(num_inducing, int), factor, kernel.diag(x).astype(dtype))


def greedy_variance(kernel: AbstractKernel, x: Float[Array, "N D"], num_inducing: int) -> Float[Array, "M D"]:
    """Rows with the largest remaining prior variance, a pivoted Cholesky [Burt et al. 2020, section 4.3]. O(N·M²)."""
    candidates, num_inducing = at_most_distinct(x, num_inducing)
    rows = x[candidates]
    return rows[_greedy_variance(kernel, rows, num_inducing)]


@compiled
def _greedy_variance(kernel, x, num_inducing):
    def add(step, state):
        return _pivot(state, kernel, x, step, jnp.argmax(state.residual))

    return lax.fori_loop(0, num_inducing, add, _start(kernel, x, num_inducing)).chosen


def greedy_bound(
    kernel: AbstractKernel,
    x: Float[Array, "N D"],
    y: Float[Array, "N P"],
    noise_variance: float | Float[Array, ""],
    num_inducing: int,
    num_candidates: int = 1000,
    seed: int = 0,
) -> Float[Array, "M D"]:
    """Rows that raise the collapsed bound F_V the most, one by one: where STRIDE starts [STRIDE, Algorithm 2].

    Every step scores all candidates (a random subset of the distinct rows) by the closed-form gain of
    `addition_gains`, at O(N·M·(M + candidates)) instead of one evaluation of the bound each.
    """
    candidates, num_inducing = at_most_distinct(x, num_inducing)
    size = max(num_inducing, min(num_candidates, len(candidates)))
    subset = np.sort(np.random.default_rng(seed).choice(candidates, size, replace=False))
    chosen = _greedy_bound(kernel, x, y, jnp.asarray(noise_variance, x.dtype), jnp.asarray(subset), num_inducing)
    return x[chosen]


@compiled
def _greedy_bound(kernel, x, y, noise_variance, candidates, num_inducing):
    cross = kernel.cross(x[candidates], x)

    def add(step, state):
        gains = addition_gains(state.factor, cross, state.residual, candidates, y, noise_variance)
        lowest = jnp.where(state.residual[candidates] < 0, -jnp.inf, jnp.finfo(gains.dtype).min)
        return _pivot(state, kernel, x, step, candidates[jnp.argmax(jnp.maximum(gains, lowest))])

    return lax.fori_loop(0, num_inducing, add, _start(kernel, x, num_inducing)).chosen


def addition_gains(
    A: Float[Array, "M N"],
    cross: Float[Array, "J N"],
    residual: Float[Array, " N"],
    candidates: Int[Array, " J"],
    y: Float[Array, "N P"],
    noise_variance: Float[Array, ""],
) -> Float[Array, " J"]:
    """How much F_V grows when row j becomes an inducing point; −∞ for rows that are determined already."""
    d = residual[candidates]
    free = d > TOLERANCE * jnp.max(residual) + TOLERANCE
    open_rows = cross.T - matmul(A.T, A[:, candidates])
    return jnp.where(free, gains_in_bound(A.T, open_rows, jnp.where(free, d, 1.0), y, noise_variance), -jnp.inf)


def gains_in_bound(
    A: Float[Array, "N M"],
    residual: Float[Array, "N J"],
    left: Float[Array, " J"],
    y: Float[Array, "N P"],
    noise_variance: Float[Array, ""],
) -> Float[Array, " J"]:
    """F_V with one more inducing point less F_V without it, for every candidate: O(N·M·(M + J)).

    A = K_nm L⁻ᵀ, `residual` has the columns k_j − A_jᵀA, `left` d_j = k_jj − |A_j|². With B = I + AᵀA/σ²,
    α = (k_j − A_jᵀA)/√d_j, b = Aᵀα/σ², s = 1 + |α|²/σ² − bᵀB⁻¹b and e = αᵀy − bᵀB⁻¹Aᵀy:
    ΔF = Σ_p [−½ log s + e_p²/(2σ⁴s) + |α|²/(2σ²)]. Columns of zeros in A stand for points that aren't there yet.
    """
    P = y.shape[1]
    B = jnp.eye(A.shape[1], dtype=A.dtype) + matmul(A.T, A) / noise_variance
    root = safe_cholesky(B, jitter=0.0).factor
    products = matmul(jnp.concatenate([A, y], axis=1).T, residual) / jnp.sqrt(left)
    b = solve_lower(root, products[:-P]) / noise_variance
    norm = jnp.sum(residual**2, axis=0) / (left * noise_variance)
    s = 1.0 + norm - jnp.sum(b**2, axis=0)
    e = products[-P:] - matmul(solve_lower(root, matmul(A.T, y)).T, b)
    return 0.5 * P * (norm - jnp.log(s)) + 0.5 * jnp.sum(e**2, axis=0) / (noise_variance**2 * s)
