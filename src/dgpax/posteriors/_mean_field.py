"""A Gaussian per layer and output, independent of all others."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from ..conditional import Projection
from ..covariances import Kuu
from ..distributions import Gaussian
from ..layers import GPLayer
from ..linalg import matmul
from ..parameters import AbstractParameter, LowerTriangular, Real, as_lower_triangular, as_real
from ..typing import Array, Float
from ._base import AbstractPosterior, Carry, Moments
from ._natural import natural_step

NaturalStep = Callable[..., tuple[Float[Array, "*b M"], Float[Array, "*b M M"]]]


class GaussianBlock(eqx.Module):
    """q(v) = Π_q N(mean_q, root_q root_qᵀ) for the processes of one layer."""

    mean: AbstractParameter = eqx.field(converter=as_real)
    root: AbstractParameter = eqx.field(converter=as_lower_triangular)


class MeanField(AbstractPosterior):
    """q(v) = Π_l Π_p N(m_{l,p}, R_{l,p} R_{l,p}ᵀ) [DSVI, eq. 10, whitened]."""

    blocks: tuple[GaussianBlock, ...] = eqx.field(converter=tuple)

    @classmethod
    def at_prior(cls, layers: tuple[GPLayer, ...], inner_scale: float = 1e-5) -> MeanField:
        """Mean 0 and covariance I; inner layers' roots are scaled down so that they start near their mean."""
        scales = [inner_scale] * (len(layers) - 1) + [1.0]
        return cls(tuple(_prior_block(layer, scale) for layer, scale in zip(layers, scales, strict=True)))

    def begin(self, layers):
        return Carry(tuple(Kuu(layer.own_inducing(), layer.kernel).root() for layer in layers))

    def inducing(self, index, layer):
        return layer.own_inducing()

    def marginal(self, index, projection: Projection, carry):
        block = self.blocks[index]
        spread = matmul(projection.A, block.root.value)
        variance = projection.residual + jnp.sum(spread**2, axis=-1)
        return outputs_last(whitened_mean(projection.A, block.mean.value), variance)

    def moments(self, index, A, carry):
        block = self.blocks[index]
        return Moments(whitened_mean(A, block.mean.value), matmul(A, block.root.value))

    def natural_step(self, gradient: MeanField, rate, step: NaturalStep = natural_step) -> MeanField:
        """A natural-gradient step down a loss, for every layer and output; `gradient` is that of the raw values."""
        pairs = zip(self.blocks, gradient.blocks, strict=True)
        return MeanField(tuple(_step_block(block, slope, rate, step) for block, slope in pairs))

    def kl(self, layers, carry):
        """½ Σ (|R|² + |m|² − M − log|RRᵀ|), against N(0, I)."""
        return sum((_kl(block) for block in self.blocks), jnp.zeros(()))


def _prior_block(layer: GPLayer, scale: float) -> GaussianBlock:
    M = layer.own_inducing().num_inducing
    Q = layer.processes().num_blocks(layer.num_outputs)
    return GaussianBlock(Real(jnp.zeros((Q, M))), LowerTriangular(jnp.tile(scale * jnp.eye(M), (Q, 1, 1))))


def _step_block(block: GaussianBlock, gradient: GaussianBlock, rate, step: NaturalStep) -> GaussianBlock:
    mean, root = step(block.mean.value, block.root.value, gradient.mean.raw, jnp.tril(gradient.root.raw), rate)
    return GaussianBlock(block.mean.with_value(mean), block.root.with_value(root))


def _kl(block: GaussianBlock) -> Float[Array, ""]:
    R, m = block.root.value, block.mean.value
    log_diagonal = jnp.log(jnp.abs(jnp.diagonal(R, axis1=-2, axis2=-1)))
    return 0.5 * (jnp.sum(R**2) + jnp.sum(m**2) - m.size) - jnp.sum(log_diagonal)


def whitened_mean(A: Float[Array, "*b Q N M"], mean: Float[Array, "R M"]) -> Float[Array, "*b P N"]:
    """A m, for every output: Q and R are P, or 1 where outputs share them."""
    return matmul(A, mean[..., None])[..., 0]


def outputs_last(mean: Float[Array, "*b P N"], variance: Float[Array, "*b #P N"]) -> Gaussian:
    """The Gaussian with axes [..., N, P]."""
    variance = jnp.broadcast_to(variance, mean.shape)
    return Gaussian(jnp.swapaxes(mean, -1, -2), jnp.swapaxes(variance, -1, -2))
