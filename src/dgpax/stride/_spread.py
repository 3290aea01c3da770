"""Draws of what a layer's values at the rows leave open at new inputs: by row, of all rows together, as functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import jax.random as jr

from ..errors import InputError
from ..fits import PriorDraws
from ..linalg import matmul, safe_cholesky, smallest_spread, solve_lower
from ..typing import Array, Float, RandomKey
from ._covariance import AbstractCovariance, Stationary

ROUNDED = 1e-6
"""Of the variance, below which a layer's draws by row shrink to nothing: a thousandth of its standard deviation."""


class Conditional(NamedTuple):
    """A layer at new features given its values at known ones, whose covariance is CCᵀ; a = C⁻¹k(known, new)."""

    covariance: AbstractCovariance
    known: Float[Array, "R E"]
    root: Float[Array, "R R"]
    new: Float[Array, "K E"]
    a: Float[Array, "R K"]


Spread = Callable[[int, Conditional], Float[Array, "K W"]]
"""Draws, with mean 0, of the layer of this number."""
RandomFunction = Callable[[Float[Array, "N E"]], Float[Array, "N W"]]


def by_row(z: Float[Array, "H W"]) -> Spread:
    """√(k − |a|²) z with the same numbers for all rows: a row's draw depends on it alone, and smoothly.

    Where next to nothing is left the root is v/√(v + ROUNDED k), as that of v = k − |a|² would magnify rounding and
    have a kink at the rows.
    """

    def draw(index: int, given: Conditional):
        prior = given.covariance.variance
        left = jnp.maximum(prior - jnp.sum(given.a**2, axis=0), 0.0)
        return (left / jnp.sqrt(left + ROUNDED * prior))[:, None] * z[index]

    return draw


def together(z: Float[Array, "H K W"]) -> Spread:
    """Cz with CCᵀ = k(new, new) − aᵀa: rows of one function."""

    def draw(index: int, given: Conditional):
        left = given.covariance(given.new, given.new) - matmul(given.a.T, given.a)
        return matmul(smallest_root(left, given.covariance), z[index])

    return draw


def pathwise(key: RandomKey, width: int, num_features: int) -> Spread:
    """φ(new) − aᵀC⁻¹φ(known) with a function φ of the prior [Wilson et al. 2020, eq. 13]: it can be asked again."""

    def draw(index: int, given: Conditional):
        phi = random_function(given.covariance, jr.fold_in(key, index), width, num_features, given.known)
        return phi(given.new) - matmul(given.a.T, solve_lower(given.root, phi(given.known)))

    return draw


def random_function(
    covariance: AbstractCovariance, key: RandomKey, width: int, num_features: int, like: Float[Array, "N E"]
) -> RandomFunction:
    """`width` functions of the prior by random Fourier features, which stationary covariances have."""
    if not isinstance(covariance, Stationary):
        raise InputError(
            "Local length scales have no random features to make functions of. Use prediction.sample_functions, which "
            "draws functions at rows that are known."
        )
    drawn = PriorDraws.of(covariance.kernel, key, 1, width, like, num_features)
    return lambda features: drawn(features)[0].T


def smallest_root(covariance: Float[Array, "K K"], prior: AbstractCovariance) -> Float[Array, "K K"]:
    """The Cholesky factor of a covariance that may have next to nothing left."""
    floor = smallest_spread(covariance.dtype) * prior.variance
    return safe_cholesky(covariance + floor * jnp.eye(covariance.shape[0], dtype=covariance.dtype)).factor
