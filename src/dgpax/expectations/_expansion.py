"""A kernel as a function of one of its inputs, and what follows for a Gaussian input."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from ..covariances import RuleTable
from ..distributions import Gaussian
from ..linalg import matmul
from ..typing import Array, Float
from ._bumps import Bumps, covariance, expected

CHUNK_NUMBERS = 2**20

expansion = RuleTable(
    "expansion",
    "Kuf and k(x, x) as functions of x, in terms whose Gaussian expectations are known: an Expansion.",
    "inducing, kernel",
)


class Expansion(eqx.Module):
    """Kuf(x) = Σ bumps(x) around M centres, k(x, x) = constant + Σ_d curvature_d x_d² (None: no such term)."""

    centre: Float[Array, "Q M D"]
    bumps: tuple[Bumps, ...]
    constant: Float[Array, "*p"]
    curvature: Float[Array, "*p D"] | None = None

    def expected_variance(self, x: Gaussian) -> Float[Array, "*b Q N"]:
        """E[k(x, x)]."""
        constant = self.constant[..., None] * jnp.ones_like(x.mean[..., 0])
        if self.curvature is None:
            return constant
        return constant + jnp.sum(self.curvature[..., None, :] * (x.mean**2 + x.variance), axis=-1)

    def expected_cross(self, x: Gaussian) -> Float[Array, "*b Q M N"]:
        """E[Kuf(x)]."""
        nothing = jnp.zeros((1, self.centre.shape[-2], x.mean.shape[-2]), x.mean.dtype)
        return sum((expected(self.centre, one, x) for one in self.bumps), nothing)

    def cross_covariance(self, x: Gaussian) -> Float[Array, "*b Q N M M"]:
        """Cov(Kuf(x)) of every row."""
        M = self.centre.shape[-2]
        total = jnp.zeros((1, x.mean.shape[-2], M, M), x.mean.dtype)
        for i, left in enumerate(self.bumps):
            total = total + covariance(self.centre, left, left, x)
            for right in self.bumps[:i]:
                mixed = covariance(self.centre, left, right, x)
                total = total + mixed + mixed.mT
        return total

    def weighted_covariance(self, weights: Float[Array, "P M M"], x: Gaussian) -> Float[Array, "*b P N"]:
        """Σ_mk weights_mk Cov(Kuf(x))_mk, in chunks of rows: there is never an array of size N·M²."""

        @jax.checkpoint
        def of_row(row: Gaussian) -> Float[Array, "*b P"]:
            C = self.cross_covariance(row)[..., 0, :, :]
            flat = C.reshape(*C.shape[:-2], 1, -1)
            return matmul(flat, weights.reshape(len(weights), -1, 1))[..., 0, 0]

        rows = jax.tree.map(lambda leaf: jnp.moveaxis(leaf[..., None, :], -3, 0), x)
        per_row = max(x.mean.size // x.mean.shape[-2] // x.mean.shape[-1], 1) * weights.size
        return jnp.moveaxis(lax.map(of_row, rows, batch_size=max(1, CHUNK_NUMBERS // per_row)), 0, -1)
