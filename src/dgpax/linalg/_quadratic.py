"""Bilinear and quadratic forms of many rows with many matrices."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..typing import Array, Float
from ._precision import einsum, matmul

CPU_BLOCKS = 4
"""Block columns of triangular matrices on a CPU."""


def bilinear_forms(
    left: Float[Array, "*b N M"], matrices: Float[Array, "P M M"], right: Float[Array, "*c N M"]
) -> Float[Array, "*b N P"]:
    """aᵀSb for the rows a and b of both sides and every matrix S; the right side may have fewer leading axes.

    On a CPU the products Sb of a row meet all samples of a in one small matrix product, there and back. Else, XLA would
    go through memory with an array as large as samples, rows, matrices and M together.
    """
    products = _products(right, matrices.mT)
    if jax.default_backend() == "cpu":
        return einsum("...nm,...npm->...np", left, products)
    return jnp.sum(left[..., None, :] * products, axis=-1)


@jax.custom_jvp
def quadratic_forms(rows: Float[Array, "*b N M"], matrices: Float[Array, "P M M"]) -> Float[Array, "*b N P"]:
    """aᵀSa for every row a and every symmetric matrix S.

    The derivative by a row is 2Sa, which the value has computed already: a pass there and back takes two products with
    matrices where it would take three.
    """
    return jnp.sum(_products(rows, matrices) * rows[..., None, :], axis=-1)


@quadratic_forms.defjvp
def _quadratic_forms_jvp(primals, tangents):
    return _forms_and_change(*primals, *tangents)


def _forms_and_change(rows, matrices, d_rows, d_matrices):
    products = _products(rows, matrices)
    along_rows = 2.0 * jnp.sum(products * d_rows[..., None, :], axis=-1)
    along_matrices = jnp.sum(_products(rows, d_matrices) * rows[..., None, :], axis=-1)
    return jnp.sum(products * rows[..., None, :], axis=-1), _computed_once(along_rows + along_matrices)


def row_norms(A: Float[Array, "*b N M"], roots: Float[Array, "P M M"]) -> Float[Array, "*b N P"]:
    """|a_n R_p|² for every row a_n and every lower-triangular R_p.

    Accelerators take the form aᵀ(RRᵀ)a, with two large products there and back in place of three. CPUs leave out the
    zeros of R, which saves more.
    """
    if jax.default_backend() == "cpu":
        return _row_norms_in_blocks(A, roots)
    return jnp.maximum(_norms_by_covariances(A, jnp.tril(roots)), 0.0)


@jax.custom_jvp
def _norms_by_covariances(rows: Float[Array, "*b N M"], roots: Float[Array, "P M M"]) -> Float[Array, "*b N P"]:
    """The derivative along dR is that of 2 dR Rᵀ, not of dR Rᵀ + R dRᵀ: the same for a form, and half the products."""
    return quadratic_forms(rows, matmul(roots, roots.mT))


@_norms_by_covariances.defjvp
def _norms_by_covariances_jvp(primals, tangents):
    (rows, roots), (d_rows, d_roots) = primals, tangents
    return _forms_and_change(rows, matmul(roots, roots.mT), d_rows, 2.0 * matmul(d_roots, roots.mT))


def _row_norms_in_blocks(A: Float[Array, "*b N M"], roots: Float[Array, "P M M"]) -> Float[Array, "*b N P"]:
    """All R_p stand side by side in one product, whose reverse derivative then sums over p inside a product too. Block
    columns of R leave out the zeros above them: 62% of the multiplications remain."""
    num_roots, size = roots.shape[0], roots.shape[-1]
    width = -(-size // CPU_BLOCKS)
    rows = A.reshape(-1, size)
    total = jnp.zeros((rows.shape[0], num_roots), A.dtype)
    for start in range(0, size, width):
        block = jnp.tril(roots[:, start:, start : start + width])
        side_by_side = jnp.transpose(block, (1, 2, 0)).reshape(size - start, -1)
        product = matmul(rows[:, start:], side_by_side)
        total = total + jnp.sum(product.reshape(rows.shape[0], -1, num_roots) ** 2, axis=-2)
    return _computed_once(total).reshape(*A.shape[:-1], num_roots)


def _products(rows: Float[Array, "*b N M"], matrices: Float[Array, "P M M"]) -> Float[Array, "*b N P M"]:
    """All matrices stand side by side in one product, whose derivative by the rows then sums over them too."""
    num, size = matrices.shape[0], matrices.shape[-1]
    side_by_side = jnp.transpose(matrices, (1, 0, 2)).reshape(size, num * size)
    return matmul(rows, side_by_side).reshape(*rows.shape[:-1], num, size)


def _computed_once(x: Float[Array, "*b P"]) -> Float[Array, "*b P"]:
    """On a CPU x times the identity, which XLA's compiler doesn't fuse through.

    It would else compute the derivative by x anew for each of the many numbers that x is a sum of: a quarter of the
    time of a step.
    """
    return matmul(x, jnp.eye(x.shape[-1], dtype=x.dtype)) if jax.default_backend() == "cpu" else x
