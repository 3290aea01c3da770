"""Draws from the prior of a kernel."""

from __future__ import annotations

import jax.random as jr

from ..linalg import matmul, safe_cholesky
from ..typing import Array, Float, RandomKey
from ._base import AbstractKernel


def sample_prior(
    kernel: AbstractKernel, x: Float[Array, "N D"], key: RandomKey, num_samples: int
) -> Float[Array, "S *b N"]:
    """Functions drawn from GP(0, kernel), at the rows of x."""
    factor = safe_cholesky(kernel.gram(x)).factor
    noise = jr.normal(key, (num_samples, *factor.shape[:-1]), factor.dtype)
    return matmul(factor, noise[..., None])[..., 0]
