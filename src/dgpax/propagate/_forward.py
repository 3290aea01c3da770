"""The one forward pass, for training, prediction and every posterior family."""

from __future__ import annotations

import jax.numpy as jnp

from ..data import Dataset
from ..distributions import Gaussian
from ..layers import AppendInputs, LatentVariables
from ..posteriors import AbstractCarry, AbstractPosterior, Layers
from ..typing import Array, Float
from ._layer import layer_outputs
from ._noise import Noise


def propagate(
    layers: Layers,
    posterior: AbstractPosterior,
    x: Float[Array, "*b N D"],
    carry: AbstractCarry,
    noise: Noise = (),
    *,
    batch: Dataset | None = None,
) -> Gaussian:
    """q(f_L(x)) given draws of the inner layers, one per leading axis of the noise [DSVI, eqs. 13-14]."""
    *_, (last, carry) = layer_inputs(layers, posterior, x, carry, noise, batch)
    return layer_outputs(len(layers) - 1, layers[-1], posterior, last, carry).marginal()


def layer_inputs(
    layers: Layers,
    posterior: AbstractPosterior,
    x: Float[Array, "*b N D"],
    carry: AbstractCarry,
    noise: Noise,
    batch: Dataset | None = None,
) -> list[tuple[Float[Array, "..."], AbstractCarry]]:
    """What every layer is given: x itself, then a draw of what stands before it; and the carry with these draws.

    Each layer is sampled at every row by itself; what comes before the first draw is computed once for all samples.
    Latent variables have their posterior where the rows are those of a `batch` of the training data, else their prior.
    """
    given = [(x, carry)]
    for index, layer in enumerate(layers[:-1]):
        last, carry = given[-1]
        if isinstance(layer, AppendInputs):
            given.append((beside(last, x), carry))
        elif isinstance(layer, LatentVariables):
            given.append((beside(last, _draw_latents(index, posterior, _of(noise, index), batch)), carry))
        else:
            given.append(layer_outputs(index, layer, posterior, last, carry).draw(_of(noise, index)))
    return given


def beside(left: Float[Array, "*b N D"], right: Float[Array, "*c N E"]) -> Float[Array, "*d N F"]:
    """The columns of both, for every sample."""
    samples = jnp.broadcast_shapes(left.shape[:-1], right.shape[:-1])
    return jnp.concatenate([jnp.broadcast_to(part, (*samples, part.shape[-1])) for part in (left, right)], axis=-1)


def _draw_latents(
    index: int, posterior: AbstractPosterior, noise: Float[Array, "*b N Q"], batch: Dataset | None
) -> Float[Array, "*b N Q"]:
    if batch is None:
        return noise
    q = posterior.latents(index, batch)
    return q.mean + q.stddev * noise


def _of(noise: Noise, index: int) -> Float[Array, "*b N Q"]:
    drawn = noise[index] if index < len(noise) else None
    if drawn is None:
        raise TypeError(
            f"propagate(...) draws layer {index}: pass noise=draw_noise(layers, key, num_samples, N, dtype)."
        )
    return drawn
