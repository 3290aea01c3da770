"""The one Cholesky factorisation of the code base, and triangular solves with its factor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ..typing import Array, Bool, Float
from ._lapack import cholesky, solve_triangular
from ._precision import matmul

MAX_RUNGS = 9
SOLVED_UP_TO = 64
"""Larger triangular matrices are inverted by halves on accelerators."""
_FLOOR = {"float64": 1e-12, "float32": 1e-6}


class Cholesky(NamedTuple):
    """`factor` L with LLᵀ = K + jitter·I; the jitter is absolute, one per batch member."""

    factor: Float[Array, "*batch M M"]
    jitter: Float[Array, "*batch"]
    success: Bool[Array, "*batch"]


def default_jitter(size: int, dtype, factorised_in=None) -> float:
    """Relative jitter to start from: max(1e-12, M·eps) in float64, max(1e-6, M·eps) in float32.

    Where the matrix is factorised in a higher precision than its factor is used in, eps is that of the higher one.
    """
    eps = float(jnp.finfo(dtype if factorised_in is None else factorised_in).eps)
    return max(_FLOOR[jnp.dtype(dtype).name], size * eps)


def smallest_spread(dtype) -> float:
    """Of the prior's variance, what a covariance takes on its diagonal before draws of it, where what is known leaves
    next to nothing open and rounding makes it indefinite: a standard deviation of 3e-5."""
    return max(1e-9, 10.0 * float(jnp.finfo(dtype).eps))


def safe_cholesky(matrix: Float[Array, "*batch M M"], jitter: float | None = None) -> Cholesky:
    """Factorise, adding as little to the diagonal as it takes.

    `jitter` is relative to the mean diagonal and is added at once; None means `default_jitter`, 0.0 means that
    nothing is added unless the plain factorisation fails. While a batch member fails, its own jitter is raised
    tenfold, at most nine times, inside the compiled program. A member that never succeeds has a factor of NaN
    and `success` False.
    """
    return Cholesky(*_with_jitter(_factorise, matrix, jitter))


def _with_jitter(decompose: Callable, matrix: Float[Array, "*batch M M"], jitter: float | None):
    """The result of a decomposition, the absolute jitter that it took, and whether it is finite."""
    smallest = default_jitter(matrix.shape[-1], matrix.dtype)
    mean_diagonal = lax.stop_gradient(jnp.trace(matrix, axis1=-2, axis2=-1) / matrix.shape[-1])
    result, relative = decompose(matrix, mean_diagonal, smallest if jitter is None else jitter, smallest)
    success = jnp.all(jnp.isfinite(result), axis=(-2, -1))
    return result, lax.stop_gradient(relative) * mean_diagonal, success


@partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def _factorise(matrix, mean_diagonal, start, smallest):
    eye = jnp.eye(matrix.shape[-1], dtype=matrix.dtype)

    def attempt(relative):
        shifted = matrix + (relative * mean_diagonal)[..., None, None] * eye
        return cholesky(shifted)

    def failed(factor):
        return ~jnp.all(jnp.isfinite(factor), axis=(-2, -1))

    def climb(carry):
        rung, relative, factor = carry
        bad = failed(factor)
        relative = jnp.where(bad, jnp.maximum(10.0 * relative, smallest), relative)
        factor = jnp.where(bad[..., None, None], attempt(relative), factor)
        return rung + 1, relative, factor

    def unfinished(carry):
        rung, _, factor = carry
        return (rung < MAX_RUNGS) & jnp.any(failed(factor))

    relative = jnp.full(matrix.shape[:-2], start, matrix.dtype)
    _, relative, factor = lax.while_loop(unfinished, climb, (0, relative, attempt(relative)))
    return factor, relative


@_factorise.defjvp
def _factorise_jvp(start, smallest, primals, tangents):
    """dL = L Φ(L⁻¹ dK L⁻ᵀ), Φ = lower triangle with the diagonal halved; the jitter is held fixed."""
    factor, relative = _factorise(*primals, start, smallest)
    dK = 0.5 * (tangents[0] + jnp.swapaxes(tangents[0], -1, -2))
    inner = solve_lower(factor, jnp.swapaxes(solve_lower(factor, dK), -1, -2))
    return (factor, relative), (matmul(factor, half_tril(inner)), jnp.zeros_like(relative))


class InverseCholesky(NamedTuple):
    """`inverse` W = L⁻¹ with LLᵀ = K + jitter·I; the jitter is absolute, one per batch member."""

    inverse: Float[Array, "*batch M M"]
    jitter: Float[Array, "*batch"]
    success: Bool[Array, "*batch"]


def safe_inverse_cholesky(matrix: Float[Array, "*batch M M"], jitter: float | None = None) -> InverseCholesky:
    """The inverse of the factor of `safe_cholesky`, with a derivative that is made of matrix products only.

    For many products with L⁻¹, which are faster than triangular solves, above all on a GPU.
    """
    return InverseCholesky(*_with_jitter(_invert_factor, matrix, jitter))


@partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def _invert_factor(matrix, mean_diagonal, start, smallest):
    factor, relative = _factorise(matrix, mean_diagonal, start, smallest)
    return inverse_factor(factor), relative


@_invert_factor.defjvp
def _invert_factor_jvp(start, smallest, primals, tangents):
    """dW = −Φ(W dK Wᵀ) W, from dL = L Φ(L⁻¹ dK L⁻ᵀ) and dW = −W dL W."""
    W, relative = _invert_factor(*primals, start, smallest)
    dK = 0.5 * (tangents[0] + jnp.swapaxes(tangents[0], -1, -2))
    inner = matmul(matmul(W, dK), jnp.swapaxes(W, -1, -2))
    return (W, relative), (-matmul(half_tril(inner), W), jnp.zeros_like(relative))


def half_tril(matrix: Float[Array, "*batch M M"]) -> Float[Array, "*batch M M"]:
    """Lower triangle with the diagonal halved."""
    return jnp.tril(matrix) - 0.5 * matrix * jnp.eye(matrix.shape[-1], dtype=matrix.dtype)


def inverse_factor(factor: Float[Array, "*batch M M"]) -> Float[Array, "*batch M M"]:
    """L⁻¹, solved on CPUs and by halves on accelerators."""
    return inverse_lower(factor, factor.shape[-1] if jax.default_backend() == "cpu" else SOLVED_UP_TO)


def inverse_lower(factor: Float[Array, "*batch M M"], solved_up_to: int) -> Float[Array, "*batch M M"]:
    """L⁻¹ by halves, which are inverted together, down to a size that is solved.

    [[A, 0], [B, C]]⁻¹ = [[A⁻¹, 0], [−C⁻¹BA⁻¹, C⁻¹]]. On a GPU products are faster than solves, which go row by row.
    """
    size = factor.shape[-1]
    if size <= solved_up_to:
        return solve_lower(factor, jnp.broadcast_to(jnp.eye(size, dtype=factor.dtype), factor.shape))
    if size % 2:
        bordered = jnp.pad(factor, [(0, 0)] * (factor.ndim - 2) + [(0, 1), (0, 1)]).at[..., -1, -1].set(1.0)
        return inverse_lower(bordered, solved_up_to)[..., :size, :size]
    half = size // 2
    A, B, C = factor[..., :half, :half], factor[..., half:, :half], factor[..., half:, half:]
    inverse_A, inverse_C = jnp.unstack(inverse_lower(jnp.stack([A, C]), solved_up_to))
    corner = -matmul(inverse_C, matmul(B, inverse_A))
    return jnp.block([[inverse_A, jnp.zeros_like(corner)], [corner, inverse_C]])


def solve_lower(factor: Float[Array, "*#batch M M"], rhs: Float[Array, "*#batch M K"]) -> Float[Array, "*batch M K"]:
    """L⁻¹ rhs; batch axes broadcast."""
    return _solve_triangular(factor, rhs, transpose=False)


def solve_lower_transposed(
    factor: Float[Array, "*#batch M M"], rhs: Float[Array, "*#batch M K"]
) -> Float[Array, "*batch M K"]:
    """L⁻ᵀ rhs; batch axes broadcast."""
    return _solve_triangular(factor, rhs, transpose=True)


def _solve_triangular(factor, rhs, *, transpose: bool):
    batch = jnp.broadcast_shapes(factor.shape[:-2], rhs.shape[:-2])
    dtype = jnp.result_type(factor, rhs)
    factor = jnp.broadcast_to(factor, (*batch, *factor.shape[-2:])).astype(dtype)
    rhs = jnp.broadcast_to(rhs, (*batch, *rhs.shape[-2:])).astype(dtype)
    return solve_triangular(factor, rhs, transpose=transpose)


def solve_cholesky(factor: Float[Array, "*#batch M M"], rhs: Float[Array, "*#batch M K"]) -> Float[Array, "*batch M K"]:
    """(LLᵀ)⁻¹ rhs."""
    return solve_lower_transposed(factor, solve_lower(factor, rhs))
