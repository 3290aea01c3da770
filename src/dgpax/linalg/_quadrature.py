"""Expectations under Gaussians: Gauss-Hermite quadrature in few dimensions, evenly spread points in many."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import jax.numpy as jnp
import numpy as np

from ..typing import Array, Float, Shaped

SOBOL_BITS = 30
FEWEST_NODES, MOST_NODES = 3, 32
"""Along an axis of a product rule."""


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


@lru_cache(maxsize=32)
def even_normals(num_points: int, size: int, seed: int = 0) -> Shaped[np.ndarray, "S Q"]:
    """Scrambled Sobol points [Owen 1998, "Scrambling Sobol' and Niederreiter-Xing points"], as normal numbers.

    Each point is a fair draw, and averages over them are closer than those over independent draws.
    """
    from scipy.special import ndtri
    from scipy.stats import qmc

    sequence = qmc.Sobol(size, bits=SOBOL_BITS, rng=np.random.default_rng(seed))
    points = sequence.random_base2((num_points - 1).bit_length())[:num_points]
    return ndtri(points + 0.5 * 2.0**-SOBOL_BITS)


@lru_cache(maxsize=32)
def normal_rule(num_points: int, size: int) -> tuple[Shaped[np.ndarray, "S Q"], Shaped[np.ndarray, " S"]]:
    """At most this many points z and weights w with E[g(z)] ≈ Σ w_s g(z_s) for z ~ N(0, I) and smooth g.

    A product of Gauss-Hermite rules where that has three nodes along every axis (256 points: up to five axes), else
    evenly spread points.
    """
    order = max(n for n in range(1, MOST_NODES + 1) if n**size <= num_points)
    if order < FEWEST_NODES:
        return even_normals(num_points, size), np.full(num_points, 1.0 / num_points)
    along, weight = gauss_hermite(order)
    points, weights = (np.stack(np.meshgrid(*[one] * size), axis=-1).reshape(-1, size) for one in (along, weight))
    return points, np.prod(weights, axis=1)
