"""Small matrices that every row of the data has: between the processes of two layers, diagonal or dense."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from ..distributions import safe_sqrt
from ..linalg import matmul, safe_cholesky, solve_lower
from ..typing import Array, Float


class RowMatrix(eqx.Module):
    """A C × D matrix for every row (and sample). Of a diagonal one, which the same outputs of two layers often have,
    only the diagonal is held: `value` is [..., N, C] then, else [..., N, C, D]."""

    value: Float[Array, "..."]
    diagonal: bool = eqx.field(static=True)

    def dense(self) -> Float[Array, "..."]:
        """[..., N, C, D]."""
        if not self.diagonal:
            return self.value
        return self.value[..., None] * jnp.eye(self.value.shape[-1], dtype=self.value.dtype)

    def __add__(self, other: RowMatrix) -> RowMatrix:
        return _combined(self, other, 1.0)

    def __sub__(self, other: RowMatrix) -> RowMatrix:
        return _combined(self, other, -1.0)

    def times(self, vectors: Float[Array, "... N D"]) -> Float[Array, "... N C"]:
        """The product with a vector for every row."""
        return self.value * vectors if self.diagonal else matmul(self.value, vectors[..., None])[..., 0]

    def times_transposed(self, other: RowMatrix) -> RowMatrix:
        """A Bᵀ."""
        if self.diagonal and other.diagonal:
            return RowMatrix(self.value * other.value, diagonal=True)
        if self.diagonal:
            return RowMatrix(self.value[..., :, None] * other.value.mT, diagonal=False)
        if other.diagonal:
            return RowMatrix(self.value * other.value[..., None, :], diagonal=False)
        return RowMatrix(matmul(self.value, other.value.mT), diagonal=False)

    def divided_by(self, factor: RowMatrix) -> RowMatrix:
        """A L⁻ᵀ for a lower-triangular L. Where a diagonal L is zero, so is the result: there is no spread left to
        learn from."""
        if not factor.diagonal:
            return RowMatrix(solve_lower(factor.value, self.dense().mT).mT, diagonal=False)
        scale = factor.value if self.diagonal else factor.value[..., None, :]
        positive = scale > 0
        return RowMatrix(jnp.where(positive, self.value / jnp.where(positive, scale, 1.0), 0.0), self.diagonal)

    def cholesky(self) -> RowMatrix:
        """The lower-triangular L with LLᵀ = A, of a covariance."""
        if self.diagonal:
            return RowMatrix(safe_sqrt(jnp.maximum(self.value, 0.0)), diagonal=True)
        return RowMatrix(safe_cholesky(self.value, jitter=0.0).factor, diagonal=False)


def _combined(a: RowMatrix, b: RowMatrix, sign: float) -> RowMatrix:
    if a.diagonal and b.diagonal:
        return RowMatrix(a.value + sign * b.value, diagonal=True)
    return RowMatrix(a.dense() + sign * b.dense(), diagonal=False)
