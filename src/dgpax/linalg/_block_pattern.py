"""Block matrices of which only some blocks are there, all of one size: [K, M, M] for K blocks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..typing import Array, Float
from ._cholesky import solve_lower
from ._precision import einsum

Pair = tuple[int, int]


@dataclass(frozen=True)
class BlockPattern:
    """Which blocks (i, j) of a lower-triangular matrix of `size` × `size` blocks may differ from zero.

    Blocks stand in the order of `pairs`: those on the diagonal, then the `coupled` ones below it.
    """

    size: int
    coupled: tuple[Pair, ...]

    @classmethod
    def from_mask(cls, mask) -> BlockPattern:
        """From a square boolean matrix; the diagonal is always there."""
        mask = np.asarray(mask, bool)
        if mask.ndim != 2 or mask.shape[0] != mask.shape[1]:
            raise InputError(f"A block pattern is a square boolean matrix; got one of shape {mask.shape}.")
        above = np.argwhere(np.triu(mask, 1))
        if len(above):
            raise InputError(
                f"A block pattern must be lower-triangular; block {tuple(map(int, above[0]))} lies above the diagonal. "
                "Couple the later process to the earlier one: mask[later, earlier] = True."
            )
        return cls(len(mask), tuple((int(i), int(j)) for i, j in np.argwhere(np.tril(mask, -1))))

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """All blocks that are there."""
        return (*((i, i) for i in range(self.size)), *self.coupled)

    @cached_property
    def places(self) -> dict[Pair, int]:
        """At which place every block stands."""
        return {pair: index for index, pair in enumerate(self.pairs)}

    @cached_property
    def mask(self) -> np.ndarray:
        """As a boolean matrix."""
        mask = np.zeros((self.size, self.size), bool)
        mask[tuple(np.transpose(self.pairs))] = True
        return mask

    @property
    def closed(self) -> bool:
        """Whether products of two matrices of this pattern have it too, and so inverses: then they are a group."""
        return not self.missing

    @cached_property
    def missing(self) -> tuple[Pair, ...]:
        """The blocks that would have to be added for it to be closed."""
        closure = self.mask
        for _ in range(self.size.bit_length()):
            closure = closure @ closure
        return tuple((int(i), int(j)) for i, j in np.argwhere(closure & ~self.mask))

    @cached_property
    def gram(self) -> BlockPattern:
        """The pattern of RRᵀ, lower triangle."""
        return BlockPattern.from_mask(np.tril(self.mask @ self.mask.T))

    def gram_of(self, root: Float[Array, "K M M"]) -> Float[Array, "J M M"]:
        """The blocks of RRᵀ, in the order of `gram`."""
        return self._gram_sums("ptam,ptbm->pab", root, root)

    def local(self, root: Float[Array, "K M M"], slope: Float[Array, "K M M"]) -> Float[Array, "K M M"]:
        """The blocks of RᵀG that lie in the pattern."""
        return self._local_sums("ptma,ptmb->pab", root, slope)

    def times(self, left: Float[Array, "K M M"], right: Float[Array, "K M M"]) -> Float[Array, "K M M"]:
        """The product of two matrices of a closed pattern."""
        return self._product_sums("ptam,ptmb->pab", left, right)

    def apply(self, matrix: Float[Array, "K M M"], vectors: Float[Array, "n M C"]) -> Float[Array, "n M C"]:
        """R v, for several vectors."""
        return self._row_sums("ptab,ptbc->pac", matrix, vectors)

    def apply_transposed(self, matrix: Float[Array, "K M M"], vectors: Float[Array, "n M C"]) -> Float[Array, "n M C"]:
        """Rᵀ v, for several vectors."""
        return self._column_sums("ptba,ptbc->pac", matrix, vectors)

    def inverse(self, matrix: Float[Array, "K M M"]) -> Float[Array, "K M M"]:
        """T⁻¹ of a closed pattern with triangular diagonal blocks: X_ij = −T_ii⁻¹ Σ_{j≤k<i} T_ik X_kj, row by row."""
        eye = jnp.broadcast_to(jnp.eye(matrix.shape[-1], dtype=matrix.dtype), matrix[: self.size].shape)
        diagonal = solve_lower(matrix[: self.size], eye)
        result = jnp.zeros_like(matrix).at[: self.size].set(diagonal)
        for i, sums in self._inverse_sums.items():
            below = einsum("ab,pbc->pac", diagonal[i], sums("ptam,ptmb->pab", matrix, result))
            places = np.array([self.places[pair] for pair in self.coupled if pair[0] == i])
            result = result.at[places].set(-below)
        return result

    @cached_property
    def _gram_sums(self) -> BlockSums:
        return self._sums(self.gram.pairs, lambda i, j, k: ((i, k), (j, k)))

    @cached_property
    def _local_sums(self) -> BlockSums:
        return self._sums(self.pairs, lambda i, j, k: ((k, i), (k, j)))

    @cached_property
    def _product_sums(self) -> BlockSums:
        return self._sums(self.pairs, lambda i, j, k: ((i, k), (k, j)))

    @cached_property
    def _inverse_sums(self) -> dict[int, BlockSums]:
        rows = sorted({i for i, _ in self.coupled})
        return {
            row: self._sums(
                [pair for pair in self.coupled if pair[0] == row],
                lambda i, j, k: ((i, k), (k, j)) if k < i else None,
            )
            for row in rows
        }

    @cached_property
    def _row_sums(self) -> BlockSums:
        return BlockSums([[(self.places[i, j], j) for j in self._all if (i, j) in self.places] for i in self._all])

    @cached_property
    def _column_sums(self) -> BlockSums:
        return BlockSums([[(self.places[i, j], i) for i in self._all if (i, j) in self.places] for j in self._all])

    @property
    def _all(self) -> range:
        return range(self.size)

    def _sums(self, wanted: Sequence[Pair], factors: Callable[[int, int, int], tuple[Pair, Pair] | None]) -> BlockSums:
        place = self.places
        pairs = [[factors(i, j, k) for k in self._all] for i, j in wanted]
        return BlockSums([[(place[t[0]], place[t[1]]) for t in row if t and set(t) <= place.keys()] for row in pairs])


class BlockSums:
    """Sums of products of blocks. Those of equally many terms are computed in one batched product."""

    def __init__(self, terms: Sequence[Sequence[Pair]]):
        """For every result, which block of the left is multiplied with which one of the right."""
        groups = defaultdict(list)
        for number, own in enumerate(terms):
            groups[len(own)].append(number)
        self.order = np.argsort([number for group in groups.values() for number in group])
        self.indices = [np.array([terms[number] for number in group]) for group in groups.values()]

    def __call__(self, spec: str, left, right):
        """`spec` has the axes p of results and t of terms in front of those of the blocks."""
        parts = [einsum(spec, left[index[..., 0]], right[index[..., 1]]) for index in self.indices]
        return jnp.concatenate(parts)[self.order]
