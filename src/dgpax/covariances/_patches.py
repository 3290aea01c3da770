"""Rules for inducing patches."""

from __future__ import annotations

import jax.numpy as jnp

from ..errors import InputError
from ..inducing import Patches
from ..kernels import AbstractKernel, Convolutional, ImageToImage, map_rows
from ..linalg import Dense
from ..typing import Array, Float
from ._processes import PatchProcesses, processes
from ._rules import Kuf, Kuu


@processes.register(Patches, ImageToImage)
def _(inducing, kernel: ImageToImage) -> PatchProcesses:
    return PatchProcesses(kernel.patch_kernel, kernel.grid, kernel.num_channels)


@Kuu.register(Patches, AbstractKernel)
def _(inducing: Patches, kernel: AbstractKernel) -> Dense:
    """The kernel's rows are patches themselves: u are function values."""
    return Dense(kernel.gram(_with_process_axis(inducing)))


@Kuf.register(Patches, AbstractKernel)
def _(inducing: Patches, kernel: AbstractKernel, x: Float[Array, "*b 1 N d"]) -> Float[Array, "*b Q M N"]:
    if inducing.locations.shape[-1] != x.shape[-1]:
        raise InputError(
            f"Inducing patches of {inducing.locations.shape[-1]} numbers don't belong to {type(kernel).__name__} on "
            f"{x.shape[-1]} columns. Use the kernel Convolutional or ImageToImage, or inducing Points."
        )
    return kernel.cross(_with_process_axis(inducing), x)


@Kuu.register(Patches, Convolutional)
@Kuu.register(Patches, ImageToImage)
def _(inducing: Patches, kernel: Convolutional | ImageToImage) -> Dense:
    """k(z, z') of the patch kernel."""
    _check_length(inducing, kernel)
    return Dense(kernel.patch_kernel.gram(_with_process_axis(inducing)))


@Kuf.register(Patches, Convolutional)
def _(inducing: Patches, kernel: Convolutional, x: Float[Array, "*b 1 N D"]) -> Float[Array, "*b Q M N"]:
    """1/P Σ_p w_p k(z, x[p]) [van der Wilk et al. 2017, eq. 17], in chunks of images."""
    _check_length(inducing, kernel)
    z, weights = _with_process_axis(inducing), kernel.coefficients(x.dtype)

    def responses(images):
        K = kernel.patch_kernel.cross(z, kernel.grid.rows(images))
        K = K.reshape(*K.shape[:-1], images.shape[-2], kernel.grid.num_patches)
        return jnp.sum(weights[..., None, None, :] * K, axis=-1)

    return map_rows(responses, x, entries=kernel.grid.num_patches * z.shape[0] * z.shape[1])


@Kuf.register(Patches, ImageToImage)
def _(inducing: Patches, kernel: ImageToImage, x: Float[Array, "*b 1 N D"]) -> Float[Array, "*b Q M rows"]:
    """k(z, x[p]), the patches of all images one after the other."""
    _check_length(inducing, kernel)
    return kernel.patch_kernel.cross(_with_process_axis(inducing), kernel.grid.rows(x))


def _check_length(inducing: Patches, kernel: Convolutional | ImageToImage) -> None:
    grid, length = kernel.grid, inducing.locations.shape[-1]
    if length != grid.num_columns:
        position = ", and 2 for the position" if grid.positions else ""
        raise InputError(
            f"The kernel's patches have {grid.num_columns} numbers ({grid.patch_shape[0]} x {grid.patch_shape[1]} "
            f"pixels of {grid.image_shape[2]} channel(s){position}), but the inducing patches have {length}. "
            "Draw them with Patches.from_images(kernel, images, num_inducing)."
        )


def _with_process_axis(inducing: Patches) -> Float[Array, "Q M d"]:
    locations = inducing.locations.value
    return locations if locations.ndim == 3 else locations[None]
