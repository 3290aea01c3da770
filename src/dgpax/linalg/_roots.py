"""Roots R of an operator, RRᵀ = K: what whitening needs of it."""

import abc
from collections.abc import Callable, Sequence
from functools import reduce

import equinox as eqx
import jax.numpy as jnp

from ..typing import Array, Bool, Float
from ._cholesky import inverse_factor, safe_cholesky, solve_lower, solve_lower_transposed
from ._precision import matmul


class AbstractRoot(eqx.Module):
    """A square matrix R, applied and inverted without building it where it has structure."""

    jitter: eqx.AbstractVar[Float[Array, "..."]]
    success: eqx.AbstractVar[Bool[Array, "..."]]

    @abc.abstractmethod
    def matmul(self, x: Float[Array, "*b M K"]) -> Float[Array, "*c M K"]:
        """R x."""

    @abc.abstractmethod
    def solve(self, x: Float[Array, "*b M K"]) -> Float[Array, "*c M K"]:
        """R⁻¹ x."""

    @abc.abstractmethod
    def solve_transposed(self, x: Float[Array, "*b M K"]) -> Float[Array, "*c M K"]:
        """R⁻ᵀ x."""

    @abc.abstractmethod
    def logdet(self) -> Float[Array, "*b"]:
        """log |det R|."""


class TriangularRoot(AbstractRoot):
    """A Cholesky factor."""

    factor: Float[Array, "*b M M"]
    jitter: Float[Array, "*b"]
    success: Bool[Array, "*b"]

    def matmul(self, x):
        return matmul(self.factor, x)

    def solve(self, x):
        return solve_lower(self.factor, x)

    def solve_transposed(self, x):
        return solve_lower_transposed(self.factor, x)

    def logdet(self):
        return jnp.sum(jnp.log(jnp.diagonal(self.factor, axis1=-2, axis2=-1)), axis=-1)


class InverseRoot(AbstractRoot):
    """A Cholesky factor that is known by its inverse W, for many products with R⁻¹ = W."""

    inverse: Float[Array, "*b M M"]
    jitter: Float[Array, "*b"]
    success: Bool[Array, "*b"]

    def matmul(self, x):
        return solve_lower(self.inverse, x)

    def solve(self, x):
        return matmul(self.inverse, x)

    def solve_transposed(self, x):
        return matmul(jnp.swapaxes(self.inverse, -1, -2), x)

    def logdet(self):
        return -jnp.sum(jnp.log(jnp.diagonal(self.inverse, axis1=-2, axis2=-1)), axis=-1)


def inverted(root: AbstractRoot | None) -> AbstractRoot | None:
    """The same root, known by its inverse where it was known by its factor."""
    if not isinstance(root, TriangularRoot):
        return root
    return InverseRoot(inverse_factor(root.factor), root.jitter, root.success)


class DiagonalRoot(AbstractRoot):
    """A diagonal matrix of square roots."""

    values: Float[Array, "*b M"]

    def __init__(self, values: Float[Array, "*b M"]):
        self.values = values

    @property
    def jitter(self):
        return jnp.zeros(self.values.shape[:-1], self.values.dtype)

    @property
    def success(self):
        return jnp.all(self.values > 0, axis=-1)

    def matmul(self, x):
        return self.values[..., None] * x

    def solve(self, x):
        return x / self.values[..., None]

    def solve_transposed(self, x):
        return self.solve(x)

    def logdet(self):
        return jnp.sum(jnp.log(self.values), axis=-1)


class BlocksRoot(AbstractRoot):
    """Cholesky factors along the diagonal, from one batched factorisation."""

    factors: Float[Array, "*b Q M M"]
    jitter: Float[Array, "*b Q"]
    success: Bool[Array, "*b Q"]

    def _per_block(self, apply: Callable, x):
        Q, M = self.factors.shape[-3], self.factors.shape[-1]
        result = apply(self.factors, x.reshape(*x.shape[:-2], Q, M, x.shape[-1]))
        return result.reshape(*result.shape[:-3], Q * M, x.shape[-1])

    def matmul(self, x):
        return self._per_block(matmul, x)

    def solve(self, x):
        return self._per_block(solve_lower, x)

    def solve_transposed(self, x):
        return self._per_block(solve_lower_transposed, x)

    def logdet(self):
        return jnp.sum(jnp.log(jnp.diagonal(self.factors, axis1=-2, axis2=-1)), axis=(-2, -1))


class KroneckerRoot(AbstractRoot):
    """R₁ ⊗ R₂ ⊗ …"""

    roots: tuple[AbstractRoot, ...]
    sizes: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, roots: tuple[AbstractRoot, ...], sizes: tuple[int, ...]):
        self.roots, self.sizes = roots, sizes

    @property
    def jitter(self):
        return reduce(jnp.maximum, (root.jitter for root in self.roots))

    @property
    def success(self):
        return reduce(jnp.logical_and, (root.success for root in self.roots))

    def matmul(self, x):
        return kronecker_apply([root.matmul for root in self.roots], self.sizes, x)

    def solve(self, x):
        return kronecker_apply([root.solve for root in self.roots], self.sizes, x)

    def solve_transposed(self, x):
        return kronecker_apply([root.solve_transposed for root in self.roots], self.sizes, x)

    def logdet(self):
        total = reduce(lambda a, b: a * b, self.sizes)
        return sum(total / size * root.logdet() for root, size in zip(self.roots, self.sizes, strict=True))


class LowRankRoot(AbstractRoot):
    """√D (I + V T Vᵀ) with V = D^(−½) U: a root of D + UUᵀ that costs O(M·R) to apply.

    With LLᵀ = VᵀV and CCᵀ = I + LᵀL, both R×R, T = L⁻ᵀ (C − I) L⁻¹ gives (I + VTVᵀ)(I + VTVᵀ)ᵀ = I + VVᵀ, and
    the inverse is I − V S Vᵀ with S = L⁻ᵀ (I − C⁻¹) L⁻¹.
    """

    scale: Float[Array, "*b M"]
    V: Float[Array, "*b M R"]
    T: Float[Array, "*b R R"]
    S: Float[Array, "*b R R"]
    half_logdet: Float[Array, "*b"]
    jitter: Float[Array, "*b"]
    success: Bool[Array, "*b"]

    @classmethod
    def of(cls, diagonal: Float[Array, "*b M"], low_rank: Float[Array, "*b M R"]) -> "LowRankRoot":
        scale = jnp.sqrt(diagonal)
        V = low_rank / scale[..., None]
        eye = jnp.eye(V.shape[-1], dtype=V.dtype)
        small = safe_cholesky(matmul(jnp.swapaxes(V, -1, -2), V), jitter=0.0)
        L = small.factor
        inner = safe_cholesky(eye + matmul(jnp.swapaxes(L, -1, -2), L), jitter=0.0)
        C = inner.factor

        def between(middle):
            left = solve_lower_transposed(L, middle)
            return jnp.swapaxes(solve_lower_transposed(L, jnp.swapaxes(left, -1, -2)), -1, -2)

        half_logdet = jnp.sum(jnp.log(scale), axis=-1)
        half_logdet += jnp.sum(jnp.log(jnp.diagonal(C, axis1=-2, axis2=-1)), axis=-1)
        inverse = solve_lower(C, jnp.broadcast_to(eye, C.shape))
        return cls(
            scale, V, between(C - eye), between(eye - inverse), half_logdet, small.jitter, small.success & inner.success
        )

    def matmul(self, x):
        Vx = matmul(jnp.swapaxes(self.V, -1, -2), x)
        return self.scale[..., None] * (x + matmul(self.V, matmul(self.T, Vx)))

    def solve(self, x):
        y = x / self.scale[..., None]
        return y - matmul(self.V, matmul(self.S, matmul(jnp.swapaxes(self.V, -1, -2), y)))

    def solve_transposed(self, x):
        Vx = matmul(jnp.swapaxes(self.V, -1, -2), x)
        inner = x - matmul(self.V, matmul(jnp.swapaxes(self.S, -1, -2), Vx))
        return inner / self.scale[..., None]

    def logdet(self):
        return self.half_logdet


def kronecker_apply(
    maps: Sequence[Callable], sizes: Sequence[int], x: Float[Array, "*b M K"]
) -> Float[Array, "*c M K"]:
    """(A₁ ⊗ A₂ ⊗ …) x, one axis at a time; batch axes of the factors broadcast with those of x."""
    K = x.shape[-1]
    for axis, (apply, size) in enumerate(zip(maps, sizes, strict=True)):
        tensor = x.reshape(*x.shape[:-2], *sizes, K)
        front = jnp.moveaxis(tensor, axis - len(sizes) - 1, -len(sizes) - 1)
        applied = apply(front.reshape(*x.shape[:-2], size, -1))
        moved = applied.reshape(*applied.shape[:-2], *front.shape[-len(sizes) - 1 :])
        back = jnp.moveaxis(moved, -len(sizes) - 1, axis - len(sizes) - 1)
        x = back.reshape(*applied.shape[:-2], -1, K)
    return x
