"""Functions from images to images that respond to every patch alike."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from ..errors import InputError
from ..linalg import einsum
from ..typing import Array, Float
from ._base import AbstractKernel
from ._multioutput import AbstractMultiOutputKernel
from ._patch_grid import PatchGrid, patch_kernel


class ImageToImage(AbstractMultiOutputKernel):
    """f_{p,c}(x) = g_c(x[p]): a pixel per patch p and channel c, g_c ~ GP(0, base) independent [FRAMEWORK, eq. 41].

    The outputs are a flat image of shape `output_shape`, the channel varying fastest, so that the next layer can be
    `ImageToImage` or `Convolutional` with that image_shape. The channels share the base kernel, unless its parameters
    have a leading axis. `position` is as in `Convolutional`. For layers with inducing `Patches`.
    """

    base: AbstractKernel
    grid: PatchGrid
    num_channels: int = eqx.field(static=True)
    position: AbstractKernel | None

    def __init__(
        self,
        base: AbstractKernel,
        image_shape: tuple[int, ...],
        patch_shape: tuple[int, ...],
        num_channels: int = 1,
        *,
        position: AbstractKernel | None = None,
        stride: int = 1,
    ):
        if num_channels < 1:
            raise InputError(f"ImageToImage(num_channels=...) must be at least 1; got {num_channels}.")
        self.base, self.num_channels, self.position = base, num_channels, position
        self.grid = PatchGrid(image_shape, patch_shape, stride, positions=position is not None)

    @property
    def patch_kernel(self) -> AbstractKernel:
        """The kernel of the g_c."""
        return patch_kernel(self.base, self.position, self.grid)

    @property
    def output_shape(self) -> tuple[int, int, int]:
        return (*self.grid.shape, self.num_channels)

    @property
    def num_outputs(self) -> int:
        return self.grid.num_patches * self.num_channels

    def cross(self, x, y):
        p, N, M = self.grid.num_patches, x.shape[-2], y.shape[-2]
        K = self._per_channel(self.patch_kernel.cross(self.grid.rows(x), self.grid.rows(y)), 2)
        K = K.reshape(*K.shape[:-2], N, p, M, p)
        apart = einsum("...cnpmq,cd->...pcnqdm", K, self._same_channel(x))
        return apart.reshape(*apart.shape[:-6], self.num_outputs, N, self.num_outputs, M)

    def diag(self, x):
        k = self._per_channel(self.patch_kernel.diag(self.grid.rows(x)), 1)
        k = k.reshape(*k.shape[:-1], x.shape[-2], self.grid.num_patches)
        return jnp.moveaxis(k, -1, -3).reshape(*k.shape[:-3], self.num_outputs, x.shape[-2])

    def over_outputs(self, x):
        image_by_image = jnp.swapaxes(self.grid.patches(x), -3, -4)
        K = self._per_channel(self.patch_kernel.gram(image_by_image), 2)
        apart = einsum("...cpq,cd->...pcqd", K, self._same_channel(x))
        return apart.reshape(*apart.shape[:-4], self.num_outputs, self.num_outputs)

    def _per_channel(self, covariance: Float[Array, "..."], matrix_axes: int) -> Float[Array, "..."]:
        axis = covariance.ndim - 1 - matrix_axes
        shape = (*covariance.shape[:axis], self.num_channels, *covariance.shape[axis + 1 :])
        return jnp.broadcast_to(covariance, shape)

    def _same_channel(self, x):
        return jnp.eye(self.num_channels, dtype=x.dtype)
