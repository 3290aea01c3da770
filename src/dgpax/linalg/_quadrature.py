"""Gauss-Hermite quadrature for expectations under a Gaussian."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import jax.numpy as jnp
import numpy as np

from ..typing import Array, Float


@lru_cache(maxsize=32)
def gauss_hermite(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes z_i and weights w_i with E[g(z)] ≈ Σ w_i g(z_i) for z ~ N(0, 1); exact for polynomials to 2·order−1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    return nodes, weights / np.sqrt(2.0 * np.pi)


def gaussian_expectation(
    function: Callable[[Float[Array, "order *shape"]], Float[Array, "order *out"]],
    mean: Float[Array, "*shape"],
    variance: Float[Array, "*shape"],
    order: int = 20,
) -> Float[Array, "*out"]:
    """E[function(f)], f ~ N(mean, variance) elementwise. The function sees a new leading axis of nodes."""
    nodes, weights = gauss_hermite(order)
    nodes = jnp.asarray(nodes, mean.dtype).reshape(-1, *([1] * mean.ndim))
    positive = variance > 0
    stddev = jnp.where(positive, jnp.sqrt(jnp.where(positive, variance, 1.0)), 0.0)
    values = function(mean + stddev * nodes)
    return jnp.tensordot(jnp.asarray(weights, values.dtype), values, axes=1, precision="highest")
