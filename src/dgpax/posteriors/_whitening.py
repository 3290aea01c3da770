"""Posteriors over the inducing outputs u themselves, for those who don't whiten: u = R v with RRᵀ = Kuu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp

from ..linalg import AbstractOperator
from ..parameters import LowerTriangular, Real
from ..typing import Array, Float
from ._base import Carry, Layers
from ._latents import AbstractLatents
from ._mean_field import GaussianBlock, MeanField, whitening_roots


class InducingOutputs(NamedTuple):
    """q(u) = Π_q N(mean_q, root_q root_qᵀ) for the processes of one layer. The root may be any square one."""

    mean: Float[Array, "Q M"]
    root: Float[Array, "Q M M"]


Block = InducingOutputs | AbstractLatents | None


def to_unwhitened(posterior: MeanField, layers: Layers) -> tuple[Block, ...]:
    """q(u) of every GP layer: the mean Rm and the root RS of q(v) = N(m, SSᵀ). Other blocks stay what they are.

    The root is triangular where R is, which isn't so for Fourier features.
    """
    carry = Carry(whitening_roots(layers))

    def unwhiten(index, block):
        if not isinstance(block, GaussianBlock):
            return block
        return InducingOutputs(*_map(carry.root(index).matmul, block.mean.value, block.root.value))

    return tuple(unwhiten(index, block) for index, block in enumerate(posterior.blocks))


def from_unwhitened(blocks: Sequence[Block], layers: Layers) -> MeanField:
    """The same posterior over v = R⁻¹u, with triangular roots."""
    carry = Carry(whitening_roots(layers))

    def whiten(index, block):
        if not isinstance(block, InducingOutputs):
            return block
        mean, root = _map(carry.root(index).solve, block.mean, block.root)
        return GaussianBlock(Real(mean), LowerTriangular(_triangular(root)))

    return MeanField(tuple(whiten(index, block) for index, block in enumerate(blocks)))


def kl_unwhitened(mean: Float[Array, "Q M"], root: Float[Array, "Q M M"], prior: AbstractOperator) -> Float[Array, ""]:
    """KL(N(m, SSᵀ) || N(0, Kuu)), summed over processes, which may share Kuu [FRAMEWORK, eq. 16].

    ½ (tr(Kuu⁻¹SSᵀ) + mᵀKuu⁻¹m − M + log|Kuu| − log|SSᵀ|); `root` is any square root S of the covariance.
    """
    R = prior.root()
    m, S = _map(R.solve, mean, root)
    log_determinants = jnp.broadcast_to(R.logdet(), mean.shape[:-1]) - jnp.linalg.slogdet(root)[1]
    return 0.5 * (jnp.sum(S**2) + jnp.sum(m**2) - mean.size) + jnp.sum(log_determinants)


def _map(linear, mean, root):
    return linear(mean[..., None])[..., 0], linear(root)


def _triangular(root: Float[Array, "Q M M"]) -> Float[Array, "Q M M"]:
    """L with LLᵀ = SSᵀ, from Sᵀ = QLᵀ: unlike a Cholesky factor of SSᵀ it doesn't square the condition number."""
    return jnp.tril(jnp.linalg.qr(root.mT, mode="r").mT)
