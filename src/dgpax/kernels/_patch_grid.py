"""Which patches an image has."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..typing import Array, Float
from ._algebra import Product
from ._base import AbstractKernel


def _with_channels(shape) -> tuple[int, int, int]:
    sizes = tuple(int(size) for size in shape)
    if len(sizes) not in (2, 3) or min(sizes) < 1:
        raise InputError(f"image_shape must be (height, width) or (height, width, channels); got {tuple(shape)}.")
    height, width, channels = (*sizes, 1)[:3]
    return height, width, channels


def _height_and_width(shape) -> tuple[int, int]:
    sizes = tuple(int(size) for size in shape)
    if len(sizes) != 2 or min(sizes) < 1:
        raise InputError(
            f"patch_shape must be (height, width), each at least 1; got {tuple(shape)}. Channels aren't cut."
        )
    return sizes[0], sizes[1]


class PatchGrid(eqx.Module):
    """The patches of an image, every `stride` pixels, row by row.

    Images are flat rows of height · width · channels numbers, the channel varying fastest. A patch holds all channels
    of its pixels, in the same order. With `positions`, the row and the column of its first pixel follow.
    """

    image_shape: tuple[int, int, int] = eqx.field(static=True, converter=_with_channels)
    patch_shape: tuple[int, int] = eqx.field(static=True, converter=_height_and_width)
    stride: int = eqx.field(static=True, default=1)
    positions: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if any(patch > image for patch, image in zip(self.patch_shape, self.image_shape, strict=False)):
            raise InputError(
                f"A patch of {self.patch_shape} is larger than the image of {self.image_shape[:2]}. "
                "Make patch_shape smaller."
            )
        if self.stride < 1:
            raise InputError(f"stride must be at least 1; got {self.stride}.")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of patches: the height and width of an image with one pixel per patch."""
        height, width = (
            (image - patch) // self.stride + 1 for image, patch in zip(self.image_shape, self.patch_shape, strict=False)
        )
        return height, width

    @property
    def num_patches(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def num_pixels(self) -> int:
        """Numbers of a patch, without its position."""
        return self.patch_shape[0] * self.patch_shape[1] * self.image_shape[2]

    @property
    def num_columns(self) -> int:
        """Numbers of a patch, with its position if it has one."""
        return self.num_pixels + 2 * self.positions

    def patches(self, x: Float[Array, "*b N D"]) -> Float[Array, "*b N patches d"]:
        """All patches of every image."""
        if x.shape[-1] != int(np.prod(self.image_shape)):
            raise InputError(
                f"Images of {self.image_shape} (height, width, channels) have {int(np.prod(self.image_shape))} "
                f"numbers, but the input has {x.shape[-1]} columns. Set image_shape to that of the images."
            )
        images = x.reshape(*x.shape[:-1], *self.image_shape)
        height, width = (self.stride * (size - 1) + 1 for size in self.shape)
        shifted = [
            images[..., i : i + height : self.stride, j : j + width : self.stride, :]
            for i, j in np.ndindex(self.patch_shape)
        ]
        patches = jnp.stack(shifted, axis=-2).reshape(*x.shape[:-1], self.num_patches, self.num_pixels)
        if not self.positions:
            return patches
        corners = jnp.broadcast_to(jnp.asarray(self.corners(), x.dtype), (*patches.shape[:-1], 2))
        return jnp.concatenate([patches, corners], axis=-1)

    def rows(self, x: Float[Array, "*b N D"]) -> Float[Array, "*b rows d"]:
        """The patches of all images one after the other."""
        patches = self.patches(x)
        return patches.reshape(*x.shape[:-2], -1, self.num_columns)

    def corners(self) -> np.ndarray:
        """Row and column of the first pixel of every patch, [patches, 2]."""
        return self.stride * np.stack(np.meshgrid(*map(np.arange, self.shape), indexing="ij"), -1).reshape(-1, 2)

    def centre_map(self, num_channels: int = 1) -> Float[Array, "D P"]:
        """The matrix that takes an image to the central pixels of its patches, P = patches · channels.

        A mean for image-to-image layers, `means.Linear(fixed(centre_map))`, as a linear map is for others. Output
        channels take the input channels in turn.
        """
        rows, columns = (self.corners() + np.asarray(self.patch_shape) // 2).T
        channels = np.arange(num_channels) % self.image_shape[2]
        pixels = (rows * self.image_shape[1] + columns)[:, None] * self.image_shape[2] + channels
        return jnp.asarray(np.eye(int(np.prod(self.image_shape)))[:, pixels.reshape(-1)])


def patch_kernel(base: AbstractKernel, position: AbstractKernel | None, grid: PatchGrid) -> AbstractKernel:
    """The kernel of rows of the grid: of the pixels, times one of the positions where they count."""
    if position is None:
        return base
    d = grid.num_pixels
    return Product(base.on(*range(d)), position.on(d, d + 1))
