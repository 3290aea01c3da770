"""Functions of images that add up the responses to their patches."""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp
from jax import lax

from ..errors import InputError
from ..parameters import AbstractParameter, Real
from ..typing import Array, Float
from ._base import AbstractKernel
from ._chunks import MAX_ENTRIES, map_rows, sum_over
from ._patch_grid import PatchGrid, patch_kernel

NUM_BLOCKS = 8


class Convolutional(AbstractKernel):
    """f(x) = 1/P Σ_p w_p g(x[p]) over the P patches of an image x, with g ~ GP(0, base) [van der Wilk et al. 2017].

    Inputs are flat images, [N, height · width · channels], as `PatchGrid` says; a patch holds all channels. It is the
    mean over patches, not the sum, so that f has the scale of g whatever the size of the image.
    `weights` None means that all w_p are 1; a number or P of them are trained, one per patch. `position` is a kernel
    of the row and column of a patch, in pixels, that multiplies the base kernel: the response may then change slowly
    over the image [Dutordoir et al. 2020, section 3.2]. Use it with inducing `Patches`, which cost P evaluations per
    image and inducing patch, where points cost P².
    """

    base: AbstractKernel
    grid: PatchGrid
    weights: AbstractParameter | None
    position: AbstractKernel | None

    def __init__(
        self,
        base: AbstractKernel,
        image_shape: tuple[int, ...],
        patch_shape: tuple[int, ...],
        *,
        weights=None,
        position: AbstractKernel | None = None,
        stride: int = 1,
    ):
        self.base, self.position = base, position
        self.grid = PatchGrid(image_shape, patch_shape, stride, positions=position is not None)
        self.weights = None if weights is None else _one_per_patch(weights, self.grid)

    @property
    def patch_kernel(self) -> AbstractKernel:
        """The kernel of g."""
        return patch_kernel(self.base, self.position, self.grid)

    def coefficients(self, dtype) -> Float[Array, "*q patches"]:
        """w_p / P."""
        P = self.grid.num_patches
        return jnp.full(P, 1.0 / P, dtype) if self.weights is None else self.weights.value / P

    def cross(self, x, y):
        """1/P² Σ_p Σ_q w_p w_q k(x[p], y[q]) [FRAMEWORK, section 4.1.3], some pairs of patches at a time."""
        left, right = self.grid.patches(x), self.grid.patches(y)
        weights, N, M = self.coefficients(x.dtype), x.shape[-2], y.shape[-2]
        pairs_of_images = N * M * math.prod(jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2]))
        size = min(self.grid.num_patches, max(1, math.isqrt(MAX_ENTRIES // max(1, pairs_of_images))))
        left, right, weights = _whole_blocks(size, left, right, weights)
        num_blocks = weights.shape[-1] // size

        def term(pair):
            a, b = (_block(weights, k, size, -1) for k in pair)
            rows, columns = _block(left, pair[0], size, -2), _block(right, pair[1], size, -2)
            K = self.patch_kernel.cross(_flat(rows), _flat(columns))
            K = K.reshape(*K.shape[:-2], N, size, M, size)
            return jnp.sum(a[..., None, :, None, None] * b[..., None, None, None, :] * K, axis=(-3, -1))

        return sum_over(term, jnp.asarray(list(itertools.product(range(num_blocks), repeat=2))))

    def gram(self, x):
        K = self.cross(x, x)
        return jnp.where(jnp.eye(x.shape[-2], dtype=bool), self.diag(x)[..., None], 0.5 * (K + K.mT))

    def diag(self, x):
        """1/P² Σ_p Σ_q w_p w_q k(x[p], x[q]), without an array of all pairs of patches of all images."""
        size = _block_size(self.grid.num_patches)

        def variances(rows):
            return jax.vmap(self._variance, in_axes=-3, out_axes=-1)(self.grid.patches(rows))

        return map_rows(variances, x, entries=size**2)

    def _variance(self, patches: Float[Array, "*b patches d"]) -> Float[Array, "*c"]:
        """Of one image: the patches by themselves, and twice every pair of them, one pair of blocks at a time."""
        kernel, weights = self.patch_kernel, self.coefficients(patches.dtype)
        alone = jnp.sum(weights**2 * kernel.diag(patches), axis=-1)
        size = _block_size(patches.shape[-2])
        patches, weights = _whole_blocks(size, patches, weights)
        num_blocks, within = weights.shape[-1] // size, jnp.arange(size)

        def term(pair):
            a, b = (_block(weights, k, size, -1) for k in pair)
            earlier = (pair[0] * size + within)[:, None] < pair[1] * size + within
            K = kernel.cross(*(_block(patches, k, size, -2) for k in pair))
            return jnp.sum(jnp.where(earlier, a[..., :, None] * b[..., None, :], 0.0) * K, axis=(-2, -1))

        pairs = jnp.asarray(list(itertools.combinations_with_replacement(range(num_blocks), 2)))
        return alone + 2.0 * sum_over(term, pairs)


def _one_per_patch(weights, grid: PatchGrid) -> AbstractParameter:
    if not isinstance(weights, AbstractParameter):
        weights = Real(weights)
    if weights.shape == ():
        return weights.with_value(jnp.full(grid.num_patches, weights.value))
    if weights.shape[-1] != grid.num_patches:
        raise InputError(
            f"Convolutional(weights=...) needs one weight for each of the {grid.num_patches} patches, or a number that "
            f"all start from; got shape {weights.shape}."
        )
    return weights


def _block_size(num_patches: int) -> int:
    return min(-(-num_patches // NUM_BLOCKS), math.isqrt(MAX_ENTRIES))


def _whole_blocks(size: int, *arrays):
    """Patches and weights (last), padded to a multiple of the block size with patches of weight zero."""
    *patches, weights = arrays
    extra = -weights.shape[-1] % size
    if not extra:
        return arrays
    padded = [jnp.concatenate([part, part[..., :extra, :]], axis=-2) for part in patches]
    return *padded, jnp.concatenate([weights, jnp.zeros((*weights.shape[:-1], extra), weights.dtype)], axis=-1)


def _block(array, index, size: int, axis: int):
    return lax.dynamic_slice_in_dim(array, index * size, size, axis)


def _flat(patches: Float[Array, "*b N p d"]) -> Float[Array, "*b rows d"]:
    return patches.reshape(*patches.shape[:-3], -1, patches.shape[-1])
