"""Bilinear and quadratic forms of many rows with many matrices."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..typing import Array, Float
from ._precision import matmul
from ._triangular import computed_once


def bilinear_forms(
    left: Float[Array, "*b N M"], matrices: Float[Array, "P M M"], right: Float[Array, "*c N M"]
) -> Float[Array, "*b N P"]:
    """aᵀSb for the rows a and b of both sides and every matrix S; the right side may have fewer leading axes."""
    return _once(jnp.sum(left[..., None, :] * _products(right, jnp.swapaxes(matrices, -1, -2)), axis=-1))


@jax.custom_jvp
def quadratic_forms(rows: Float[Array, "*b N M"], matrices: Float[Array, "P M M"]) -> Float[Array, "*b N P"]:
    """aᵀSa for every row a and every symmetric matrix S.

    The derivative by a row is 2Sa, which the value has computed already: a pass there and back takes two products with
    matrices where it would take three.
    """
    return jnp.sum(_products(rows, matrices) * rows[..., None, :], axis=-1)


@quadratic_forms.defjvp
def _quadratic_forms_jvp(primals, tangents):
    (rows, matrices), (d_rows, d_matrices) = primals, tangents
    products = _products(rows, matrices)
    along_rows = 2.0 * jnp.sum(products * d_rows[..., None, :], axis=-1)
    along_matrices = jnp.sum(_products(rows, d_matrices) * rows[..., None, :], axis=-1)
    return jnp.sum(products * rows[..., None, :], axis=-1), _once(along_rows + along_matrices)


def _products(rows: Float[Array, "*b N M"], matrices: Float[Array, "P M M"]) -> Float[Array, "*b N P M"]:
    """All matrices stand side by side in one product, whose derivative by the rows then sums over them too."""
    num, size = matrices.shape[0], matrices.shape[-1]
    side_by_side = jnp.transpose(matrices, (1, 0, 2)).reshape(size, num * size)
    return matmul(rows, side_by_side).reshape(*rows.shape[:-1], num, size)


def _once(values: Float[Array, "*b N P"]) -> Float[Array, "*b N P"]:
    return computed_once(values) if jax.default_backend() == "cpu" else values
