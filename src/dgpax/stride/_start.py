"""Hidden layers and kernels from which the top layer starts as a stationary GP."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from ..kernels import AbstractStationary
from ..parameters import fixed
from ..typing import Array, ArrayLike, Float


class Start(NamedTuple):
    """Values of every hidden layer at the rows, and the kernels of the first, the other hidden and the top layer."""

    values: Float[Array, "N W"]
    bottom: AbstractStationary
    middle: AbstractStationary
    top: AbstractStationary


def like(
    kernel: AbstractStationary, lengthscale: Float[ArrayLike, "..."], variance: Float[ArrayLike, ""]
) -> AbstractStationary:
    """A kernel of the same kind with other values."""
    dtype = kernel.variance.value.dtype
    values = fixed(jnp.asarray(lengthscale, dtype)), fixed(jnp.asarray(variance, dtype))
    return eqx.tree_at(lambda k: (k.lengthscale, k.variance), kernel, values)


def coordinates(
    x: Float[Array, "N D"], lengthscale: Float[Array, "..."], width: int | None
) -> tuple[Float[Array, "N W"], Float[Array, " W"]]:
    """Values u of mean square 1 and length scales ℓ such that the distances of u/ℓ are those of x/lengthscale.

    With as many columns as x, u is x itself, rescaled. With fewer it is their principal components, which keep as
    much of the distances as they can; with more, the remaining columns are 0.
    """
    D = x.shape[1]
    scaled = x / lengthscale
    if width is not None and width < D:
        axes = jnp.linalg.svd(scaled - jnp.mean(scaled, axis=0), full_matrices=False)[2]
        scaled = scaled @ axes[:width].T
    if width is not None and width > D:
        scaled = jnp.concatenate([scaled, jnp.zeros((x.shape[0], width - D), x.dtype)], axis=1)
    size = jnp.sqrt(jnp.mean(scaled**2, axis=0))
    scales = jnp.where(size > 0, 1.0 / jnp.where(size > 0, size, 1.0), 1.0)
    return scaled * scales, scales


def spread(x: Float[Array, "N D"], lengthscale: Float[Array, "..."]) -> Float[Array, ""]:
    """Root mean square distance of the rows from their centre, in these length scales."""
    scaled = (x - jnp.mean(x, axis=0)) / lengthscale
    return jnp.sqrt(jnp.mean(jnp.sum(scaled**2, axis=1)))
