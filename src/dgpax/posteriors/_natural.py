"""Natural-gradient steps of Gaussians in local coordinates of their root."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..linalg import BlockPattern, half_tril, matmul, solve_lower
from ..parameters import AbstractParameter
from ..typing import Array, Float

SMALLEST_DIAGONAL = 0.5
LARGEST_GROWTH = 2.0
LARGEST_MOVE = 1.0
"""Trust region of a step: standard deviations grow at most twofold, means move at most by one of the old standard
deviations per coordinate on average (root mean square). Steps of a Gaussian likelihood are well inside."""


class AbstractNatural(eqx.Module):
    """Part of a posterior that can take natural-gradient steps; engines find such parts wherever they stand."""

    @abc.abstractmethod
    def parameters(self) -> tuple[AbstractParameter, ...]:
        """What moves in a natural-gradient step; if one of them isn't trained, none takes such steps."""

    @abc.abstractmethod
    def natural_step(self, gradient: Any, rate: float | Float[Array, ""]) -> "AbstractNatural":
        """After a step down a loss; `gradient` is one of its own kind with the derivatives by the raw values."""


def natural_step(
    mean: Float[Array, "*b M"],
    root: Float[Array, "*b M M"],
    mean_gradient: Float[Array, "*b M"],
    root_gradient: Float[Array, "*b M M"],
    rate: float | Float[Array, ""],
) -> tuple[Float[Array, "*b M"], Float[Array, "*b M M"]]:
    """The new (mean, root) of N(m, RRᵀ) after a step down a loss, in a form that never leaves the lower triangle.

    With P(RᵀG) = lower triangle, diagonal halved, of RᵀG: T = I + rate·P(RᵀG), its diagonal at least 0.5, then
    R ← R T⁻¹ and m ← m − rate·RRᵀ g with the new root. Where the loss curves the wrong way, as
    it may in inner layers and for single samples, T⁻¹ can be large: a Gaussian whose standard deviations would more
    than double takes the diagonal part of its step only, and a mean that would jump is moved less far.
    """
    eye = jnp.eye(root.shape[-1], dtype=root.dtype)
    T = eye + rate * half_tril(matmul(root.mT, root_gradient))
    diagonal = jnp.maximum(jnp.diagonal(T, axis1=-2, axis2=-1), SMALLEST_DIAGONAL)
    inverse = solve_lower(jnp.tril(T, -1) + diagonal[..., None] * eye, jnp.broadcast_to(eye, T.shape))
    growth = jnp.max(jnp.sum(inverse**2, axis=-1), axis=-1)
    trusted = (growth <= LARGEST_GROWTH**2)[..., None, None]
    inverse = jnp.where(trusted, inverse, eye / diagonal[..., None])
    new = jnp.tril(matmul(root, inverse))
    move = rate * matmul(jnp.swapaxes(new, -1, -2), mean_gradient[..., None])
    in_old_deviations = jnp.sqrt(jnp.mean(matmul(inverse, move) ** 2, axis=(-2, -1), keepdims=True))
    shorter = LARGEST_MOVE / jnp.maximum(in_old_deviations, LARGEST_MOVE)
    return mean - matmul(new, move * shorter)[..., 0], new


def natural_block_step(
    pattern: BlockPattern,
    mean: Float[Array, "n M"],
    root: Float[Array, "K M M"],
    mean_gradient: Float[Array, "n M"],
    root_gradient: Float[Array, "K M M"],
    rate: float | Float[Array, ""],
) -> tuple[Float[Array, "n M"], Float[Array, "K M M"]]:
    """`natural_step` for a root with a closed block pattern, whose T⁻¹ and products stay in it.

    The trust region is that of every process: without coupling it is the same step.
    """
    size, eye = pattern.size, jnp.eye(root.shape[-1], dtype=root.dtype)
    local = rate * pattern.local(root, root_gradient)
    own = eye + half_tril(local[:size])
    diagonal = jnp.maximum(jnp.diagonal(own, axis1=-2, axis2=-1), SMALLEST_DIAGONAL)
    own = jnp.tril(own, -1) + diagonal[..., None] * eye
    inverse = pattern.inverse(local.at[:size].set(own))
    rows = np.array([i for i, _ in pattern.pairs])
    norms = jnp.zeros(diagonal.shape, root.dtype).at[rows].add(jnp.sum(inverse**2, axis=-1))
    trusted = (jnp.max(norms, axis=-1) <= LARGEST_GROWTH**2)[:, None, None]
    alone = jnp.zeros_like(inverse).at[:size].set(eye / diagonal[..., None])
    inverse = jnp.where(trusted[rows], inverse, alone)
    new = pattern.times(root, inverse)
    new = new.at[:size].set(jnp.tril(new[:size]))
    move = rate * pattern.apply_transposed(new, mean_gradient[..., None])
    in_old_deviations = jnp.sqrt(jnp.mean(pattern.apply(inverse, move) ** 2, axis=(-2, -1), keepdims=True))
    shorter = LARGEST_MOVE / jnp.maximum(in_old_deviations, LARGEST_MOVE)
    return mean - pattern.apply(new, move * shorter)[..., 0], new
