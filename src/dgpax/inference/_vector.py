"""All arrays of a tree as one vector, for which a GPU needs one kernel in place of one for every array."""

from __future__ import annotations

import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree

from ..typing import Array, Bool, Float, PyTree


def norm(tree: PyTree) -> Float[Array, ""]:
    """Euclidean norm of all arrays together."""
    return jnp.sqrt(jnp.sum(ravel_pytree(tree)[0] ** 2))


def all_finite(tree: PyTree) -> Bool[Array, ""]:
    return jnp.all(jnp.isfinite(ravel_pytree(tree)[0]))


def flat_adam(rate: float) -> optax.GradientTransformation:
    """Adam on one vector of all numbers, which takes a few kernels on a GPU in place of a few for every array."""
    adam = optax.adam(rate)

    def update(updates, state, params=None):
        vector, restore = ravel_pytree(updates)
        moved, state = adam.update(vector, state)
        return restore(jnp.asarray(moved)), state

    return optax.GradientTransformation(lambda params: adam.init(ravel_pytree(params)[0]), update)
