"""The one forward pass, for training, prediction and every posterior family."""

from __future__ import annotations

import equinox as eqx

from ..data import Dataset
from ..layers import GPLayer, LatentVariables, Layers, last_gp
from ..posteriors import AbstractCarry, AbstractPosterior
from ..typing import Array, Float
from ._base import AbstractOutputs, outputs_of
from ._noise import Noise
from ._walk import walk


class Draws(eqx.Module):
    """The visitor that draws every layer at every row by itself.

    Latent variables have their posterior where the rows are those of a `batch` of the training data, else their prior.
    """

    posterior: AbstractPosterior
    noise: Noise
    batch: Dataset | None = None

    def __call__(
        self, index: int, random: GPLayer | LatentVariables, x: Float[Array, "*b N D"], carry: AbstractCarry
    ) -> tuple[Float[Array, "..."], AbstractCarry]:
        noise = self.noise[index] if index < len(self.noise) else None
        if noise is None:
            raise TypeError(
                f"propagate(...) draws layer {index}: pass noise=draw_noise(layers, key, num_samples, N, dtype)."
            )
        if isinstance(random, GPLayer):
            return outputs_of(index, random, self.posterior, x, carry).draw(noise)
        if self.batch is None:
            return noise, carry
        q = self.posterior.latents(index, self.batch)
        return q.mean + q.stddev * noise, carry


def propagate(
    layers: Layers,
    posterior: AbstractPosterior,
    x: Float[Array, "*b N D"],
    carry: AbstractCarry,
    noise: Noise = (),
    *,
    batch: Dataset | None = None,
) -> AbstractOutputs:
    """q(f_L(x)) given draws of the inner layers, one per leading axis of the noise [DSVI, eqs. 14-15].

    What comes before the first draw is computed once for all samples.
    """
    last = last_gp(layers)
    given, carry = walk(layers[:-1], x, Draws(posterior, noise, batch), carry)
    return outputs_of(len(layers) - 1, last, posterior, given.last, carry)
