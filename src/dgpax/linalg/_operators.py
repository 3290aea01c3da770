"""Symmetric positive definite operators that keep their structure.

An operator of size M knows its diagonal, its product with [..., M, K] arrays and its root. Everything else
(solve, logdet) follows from the root: a factor R with RRᵀ equal to the operator.
"""

from __future__ import annotations

import abc
from functools import reduce

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import block_diag

from ..errors import InputError
from ..typing import Array, Float
from ._cholesky import safe_cholesky
from ._precision import matmul
from ._roots import (
    AbstractRoot,
    BlocksRoot,
    DiagonalRoot,
    KroneckerRoot,
    LowRankRoot,
    TriangularRoot,
    kronecker_apply,
)


class AbstractOperator(eqx.Module):
    """A symmetric positive definite matrix."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """M."""

    @abc.abstractmethod
    def diag(self) -> Float[Array, "*b M"]:
        """The diagonal."""

    @abc.abstractmethod
    def matmul(self, x: Float[Array, "*b M K"]) -> Float[Array, "*c M K"]:
        """The product with a matrix."""

    @abc.abstractmethod
    def to_dense(self) -> Float[Array, "*b M M"]:
        """The matrix itself."""

    @abc.abstractmethod
    def root(self) -> AbstractRoot:
        """R with RRᵀ = this operator (plus the jitter that the root reports)."""

    def solve(self, x: Float[Array, "*b M K"]) -> Float[Array, "*c M K"]:
        """The inverse times a matrix."""
        root = self.root()
        return root.solve_transposed(root.solve(x))

    def logdet(self) -> Float[Array, "*b"]:
        """Log determinant."""
        return 2.0 * self.root().logdet()


class Dense(AbstractOperator):
    """No structure."""

    matrix: Float[Array, "*b M M"]

    @property
    def size(self):
        return self.matrix.shape[-1]

    def diag(self):
        return jnp.diagonal(self.matrix, axis1=-2, axis2=-1)

    def matmul(self, x):
        return matmul(self.matrix, x)

    def to_dense(self):
        return self.matrix

    def root(self):
        return TriangularRoot(*safe_cholesky(self.matrix))


class Diagonal(AbstractOperator):
    """A diagonal matrix."""

    values: Float[Array, "*b M"]

    @property
    def size(self):
        return self.values.shape[-1]

    def diag(self):
        return self.values

    def matmul(self, x):
        return self.values[..., None] * x

    def to_dense(self):
        return self.values[..., None] * jnp.eye(self.size, dtype=self.values.dtype)

    def root(self):
        return DiagonalRoot(jnp.sqrt(self.values))


class Blocks(AbstractOperator):
    """Q blocks of equal size along the diagonal: independent latent processes. Vectors run block by block."""

    blocks: Float[Array, "*b Q M M"]

    @property
    def size(self):
        return self.blocks.shape[-3] * self.blocks.shape[-1]

    def diag(self):
        entries = jnp.diagonal(self.blocks, axis1=-2, axis2=-1)
        return entries.reshape(*entries.shape[:-2], self.size)

    def matmul(self, x):
        stacked = x.reshape(*x.shape[:-2], self.blocks.shape[-3], self.blocks.shape[-1], x.shape[-1])
        product = matmul(self.blocks, stacked)
        return product.reshape(*product.shape[:-3], self.size, x.shape[-1])

    def to_dense(self):
        build = jnp.vectorize(lambda blocks: block_diag(*blocks), signature="(q,m,m)->(n,n)")
        return build(self.blocks)

    def root(self):
        return BlocksRoot(*safe_cholesky(self.blocks))


class Kronecker(AbstractOperator):
    """K₁ ⊗ K₂ ⊗ …, the last factor varying fastest."""

    factors: tuple[AbstractOperator, ...] = eqx.field(converter=tuple)

    @property
    def size(self):
        return reduce(lambda size, factor: size * factor.size, self.factors, 1)

    def diag(self):
        return reduce(_outer, (factor.diag() for factor in self.factors))

    def matmul(self, x):
        return kronecker_apply([factor.matmul for factor in self.factors], [f.size for f in self.factors], x)

    def to_dense(self):
        return reduce(_kronecker, (factor.to_dense() for factor in self.factors))

    def root(self):
        return KroneckerRoot(tuple(f.root() for f in self.factors), tuple(f.size for f in self.factors))


class LowRankPlusDiagonal(AbstractOperator):
    """diag(diagonal) + UUᵀ with few columns in U: Fourier features. Costs M·R² instead of M³."""

    diagonal: Float[Array, "*b M"]
    low_rank: Float[Array, "*b M R"]

    def __check_init__(self):
        if self.low_rank.shape[-1] > self.low_rank.shape[-2]:
            raise InputError(f"LowRankPlusDiagonal needs rank <= size; got {self.low_rank.shape[-2:]}. Use Dense.")

    @property
    def size(self):
        return self.diagonal.shape[-1]

    def diag(self):
        return self.diagonal + jnp.sum(self.low_rank**2, axis=-1)

    def matmul(self, x):
        inner = matmul(jnp.swapaxes(self.low_rank, -1, -2), x)
        return self.diagonal[..., None] * x + matmul(self.low_rank, inner)

    def to_dense(self):
        diagonal = self.diagonal[..., None] * jnp.eye(self.size, dtype=self.diagonal.dtype)
        return diagonal + matmul(self.low_rank, jnp.swapaxes(self.low_rank, -1, -2))

    def root(self):
        return LowRankRoot.of(self.diagonal, self.low_rank)


def _outer(a: Float[Array, "*b A"], b: Float[Array, "*b B"]) -> Float[Array, "*b C"]:
    product = a[..., :, None] * b[..., None, :]
    return product.reshape(*product.shape[:-2], -1)


def _kronecker(a: Float[Array, "*#b A A"], b: Float[Array, "*#b B B"]) -> Float[Array, "*b C C"]:
    product = a[..., :, None, :, None] * b[..., None, :, None, :]
    size = a.shape[-1] * b.shape[-1]
    return product.reshape(*product.shape[:-4], size, size)
