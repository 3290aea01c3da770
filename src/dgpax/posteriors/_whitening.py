"""Posteriors over the inducing outputs u themselves, for those who don't whiten: u = R v with RRᵀ = Kuu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..layers import gp_layers
from ..linalg import AbstractOperator, matmul
from ..parameters import LowerTriangular, Real
from ..typing import Array, Float
from ._base import Carry, Layers
from ._coupled import Coupled, CoupledGaussian
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


class CoupledOutputs(NamedTuple):
    """q(u) = N(mean, RRᵀ) over the inducing outputs of all layers, in the order and the block pattern of `Coupled`."""

    mean: Float[Array, "n M"]
    blocks: Float[Array, "K M M"]


def coupled_to_unwhitened(posterior: Coupled, layers: Layers) -> CoupledOutputs:
    """q(u) of a coupled posterior: u_i = R_i v_i with R_i R_iᵀ = Kuu of the process's layer."""
    q = posterior.outputs
    return CoupledOutputs(*_map_rows(_process_maps(posterior, layers, "matmul"), q.mean.value, q.blocks(), q.pattern))


def coupled_from_unwhitened(outputs: CoupledOutputs, like: Coupled, layers: Layers) -> Coupled:
    """The same posterior over whitened inducing outputs, with the pattern of `like`. Where Kuu has a triangular root,
    which it hasn't for Fourier features, blocks on the diagonal may be any triangular ones."""
    pattern = like.outputs.pattern
    mean, blocks = _map_rows(_process_maps(like, layers, "solve"), outputs.mean, outputs.blocks, pattern)
    own, coupling = LowerTriangular(jnp.tril(blocks[: pattern.size])), Real(blocks[pattern.size :])
    return Coupled(CoupledGaussian(Real(mean), own, coupling, pattern), like.others, like.widths)


def _map_rows(maps: Float[Array, "n M M"], mean: Float[Array, "n M"], blocks: Float[Array, "K M M"], pattern):
    rows = np.array([i for i, _ in pattern.pairs])
    return matmul(maps, mean[..., None])[..., 0], matmul(maps[rows], blocks)


def _process_maps(posterior: Coupled, layers: Layers, verb: str) -> Float[Array, "n M M"]:
    """The root of every process's Kuu ("matmul"), or its inverse ("solve"), as a matrix. Layers with fewer inducing
    outputs than the largest are filled up with the identity."""
    M, maps = posterior.outputs.mean.shape[-1], []
    roots = whitening_roots(layers)
    for index, layer in gp_layers(layers).items():
        size, width = layer.own_inducing().num_inducing, posterior.widths[index]
        own = getattr(roots[index], verb)(jnp.eye(size, dtype=posterior.outputs.mean.dtype)[None])
        filled = jnp.broadcast_to(jnp.eye(M, dtype=own.dtype), (width, M, M))
        maps.append(filled.at[:, :size, :size].set(own))
    return jnp.concatenate(maps)


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
