"""A Gaussian per layer and output, independent of all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..conditional import Projection
from ..covariances import Kuu
from ..data import Dataset
from ..distributions import Gaussian
from ..errors import InputError
from ..layers import GPLayer, gp_layers, latent_layers
from ..linalg import AbstractRoot, log_diagonal, matmul, roots_together, row_norms
from ..parameters import AbstractParameter, LowerTriangular, Real, as_lower_triangular, as_real, cast
from ..typing import Array, Float
from ._base import AbstractLayerwise, Carry, Layers, Moments
from ._latents import AbstractLatents
from ._natural import AbstractNatural, natural_step


class GaussianBlock(AbstractNatural):
    """q(v) = Π_q N(mean_q, root_q root_qᵀ) for the processes of one layer."""

    mean: AbstractParameter = eqx.field(converter=as_real)
    root: AbstractParameter = eqx.field(converter=as_lower_triangular)

    def parameters(self):
        return self.mean, self.root

    def natural_step(self, gradient, rate):
        """For every process by itself."""
        slope = jnp.tril(gradient.root.raw)
        mean, root = natural_step(self.mean.value, self.root.value, gradient.mean.raw, slope, rate)
        return GaussianBlock(self.mean.with_value(mean), self.root.with_value(root))


class MeanField(AbstractLayerwise):
    """q(v) = Π_l Π_p N(m_{l,p}, R_{l,p} R_{l,p}ᵀ) [DSVI, eq. 12, whitened], and q(w_n) of latent variables.

    One block per layer: a GaussianBlock for GPs, AbstractLatents for latent variables, None for layers without either.
    """

    blocks: tuple[Any, ...] = eqx.field(converter=tuple)

    @classmethod
    def at_prior(cls, layers: Layers, inner_scale: float = 1e-5, latents: Sequence[AbstractLatents] = ()) -> MeanField:
        """Mean 0 and covariance I; inner layers' roots are scaled down so that they start near their mean.

        `latents` are those of the layers of latent variables, in their order.
        """
        own, scales = gp_layers(layers), [inner_scale] * (len(layers) - 1) + [1.0]
        blocks = [
            _prior_block(own[index], scale) if index in own else others
            for index, (scale, others) in enumerate(zip(scales, in_their_places(layers, latents), strict=True))
        ]
        return cls(tuple(blocks))

    def begin(self, layers):
        return Carry(whitening_roots(layers))

    def inducing(self, index, layer, carry):
        return layer.own_inducing()

    def marginal(self, index, projection: Projection, carry):
        m, R = self._gaussian(index)
        A = projection.A
        if A.shape[-3] == 1:
            rows, residual = A[..., 0, :, :], jnp.swapaxes(projection.residual, -1, -2)
            return Gaussian(matmul(rows, m.T), residual + row_norms(rows, R))
        variance = projection.residual + jnp.sum(matmul(A, R) ** 2, axis=-1)
        return outputs_last(whitened_mean(A, m), variance)

    def moments(self, index, A, carry):
        m, R = self._gaussian(index)
        return Moments(whitened_mean(A, m), matmul(A, R))

    def latents(self, index, batch):
        return latents_of(self.blocks, index, batch)

    def kl(self, layers, carry):
        """½ Σ (|R|² + |m|² − M − log|RRᵀ|), against N(0, I)."""
        return jnp.sum(jnp.stack([_kl(block) for block in self.blocks if isinstance(block, GaussianBlock)]))

    def _gaussian(self, index: int) -> tuple[Float[Array, "Q M"], Float[Array, "Q M M"]]:
        block = self.blocks[index]
        if not isinstance(block, GaussianBlock):
            raise TypeError(f"Block {index} of the posterior is {type(block).__name__}, not of inducing outputs.")
        return block.mean.value, block.root.value


def latents_of(blocks: Sequence[Any], index: int, batch: Dataset) -> Gaussian:
    """q(w_n) of the layer's latent variables."""
    block = blocks[index]
    if not isinstance(block, AbstractLatents):
        raise TypeError(f"Block {index} of the posterior is {type(block).__name__}, not of latent variables.")
    return block(batch)


def whitening_roots(layers: Layers) -> tuple[AbstractRoot | None, ...]:
    """The root of Kuu of every GP layer, in the dtype of its kernel, equal sizes factorised together.

    With 64-bit numbers available, Kuu of a float32 model is built and factorised in float64.
    """
    own = gp_layers(layers)
    dtype = jnp.result_type(*(leaf for leaf in jax.tree.leaves(own) if eqx.is_inexact_array(leaf)))
    accurate = cast(own, jnp.promote_types(dtype, jnp.result_type(float)))
    operators = [Kuu(layer.own_inducing(), layer.kernel) for layer in accurate.values()]
    roots = dict(zip(own, roots_together(operators, dtype), strict=True))
    return tuple(roots.get(index) for index in range(len(layers)))


def in_their_places(layers: Layers, latents: Sequence[AbstractLatents]) -> tuple[AbstractLatents | None, ...]:
    """The posteriors of latent variables at the layers of these, None elsewhere."""
    remaining, own = list(latents), latent_layers(layers)
    return tuple(_next(remaining) if index in own else None for index in range(len(layers)))


def _next(latents: list[AbstractLatents]) -> AbstractLatents:
    if not latents:
        raise InputError(
            "The model has latent variables, whose posterior depends on the data: give one per layer of them, "
            "MeanField.at_prior(layers, latents=[RowLatents.start(...)]), or leave it to Variational()."
        )
    return latents.pop(0)


def _prior_block(layer: GPLayer, scale: float) -> GaussianBlock:
    M = layer.own_inducing().num_inducing
    Q = layer.num_blocks
    return GaussianBlock(Real(jnp.zeros((Q, M))), LowerTriangular(jnp.tile(scale * jnp.eye(M), (Q, 1, 1))))


def _kl(block: GaussianBlock) -> Float[Array, ""]:
    R, m = block.root.value, block.mean.value
    return 0.5 * (jnp.sum(R**2) + jnp.sum(m**2) - m.size) - jnp.sum(log_diagonal(R))


def whitened_mean(A: Float[Array, "*b Q N M"], mean: Float[Array, "*c R M"]) -> Float[Array, "*d P N"]:
    """A m, for every output: Q and R are P, or 1 where outputs share them. A shared A takes one product for all."""
    if A.shape[-3] == 1:
        return matmul(A[..., 0, :, :], mean.mT).mT
    return matmul(A, mean[..., None])[..., 0]


def outputs_last(mean: Float[Array, "*b P N"], variance: Float[Array, "*c #P N"]) -> Gaussian:
    """The Gaussian with axes [..., N, P]."""
    variance = jnp.broadcast_to(variance, mean.shape)
    return Gaussian(jnp.swapaxes(mean, -1, -2), jnp.swapaxes(variance, -1, -2))
