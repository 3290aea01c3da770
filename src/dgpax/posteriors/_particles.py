"""Draws of the inducing outputs of all layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..typing import Array, Float
from ._base import AbstractLayerwise, Carry, Moments
from ._latents import AbstractLatents
from ._mean_field import latents_of, outputs_last, whitened_mean, whitening_roots


class Particles(AbstractLayerwise):
    """An equal mixture of point masses at draws of v: [*shape, Q, M] per GP layer, the same leading axes in all.

    What samplers give, and what any posterior becomes when its inducing outputs are drawn instead of marginalised.
    """

    blocks: tuple[Any, ...] = eqx.field(converter=tuple)

    @classmethod
    def of_processes(
        cls, v: Float[Array, "*s n M"], widths: Sequence[int], others: Sequence[AbstractLatents | None]
    ) -> Particles:
        """From the processes of all layers, one after the other."""
        ends = np.cumsum(widths)
        return cls(
            tuple(
                v[..., end - width : end, :] if width else other
                for end, width, other in zip(ends, widths, others, strict=True)
            )
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The leading axes of the draws; for a sampler's, their number."""
        return next(block.shape[:-2] for block in self.blocks if eqx.is_array(block))

    def begin(self, layers):
        return Carry(whitening_roots(layers))

    def inducing(self, index, layer, carry):
        return layer.own_inducing()

    def marginal(self, index, projection, carry):
        return outputs_last(self._mean(index, projection.A), projection.residual)

    def moments(self, index, A, carry):
        mean = self._mean(index, A)
        return Moments(mean, jnp.zeros((*mean.shape, 0), mean.dtype))

    def layerwise(self, key, shape):
        """As many of the draws, in random order and again from the first where there are fewer."""
        if self.shape in ((), shape):
            return self
        chosen = jnp.resize(jr.permutation(key, self.shape[0]), shape)
        return Particles([block[chosen] if eqx.is_array(block) else block for block in self.blocks])

    def suitable_samples(self, wanted):
        """One for every draw."""
        return self.shape[0]

    def latents(self, index, batch):
        return latents_of(self.blocks, index, batch)

    def kl(self, layers, carry):
        """Infinite: a point mass has no density."""
        return jnp.asarray(jnp.inf)

    def _mean(self, index: int, A: Float[Array, "*b Q N M"]) -> Float[Array, "*c P N"]:
        return whitened_mean(A, self.blocks[index][..., : A.shape[-1]])
