"""Rules for kernels with several outputs."""

from __future__ import annotations

import jax.numpy as jnp

from ..inducing import AbstractInducing, OutputPairs, OutputPoints, Points
from ..kernels import LMC, AbstractMultiOutputKernel, ProcessConvolution
from ..linalg import Dense, einsum
from ..typing import Array, Float
from ._rules import Kuf, Kuu


@Kuu.register(AbstractInducing, LMC)
def _(inducing: AbstractInducing, kernel: LMC):
    """Inducing variables in the latent processes: Q blocks, or one for all [FRAMEWORK, eqs. 49-55]."""
    return Kuu(inducing, kernel.latent)


@Kuf.register(AbstractInducing, LMC)
def _(inducing: AbstractInducing, kernel: LMC, x: Float[Array, "*b 1 N D"]):
    return Kuf(inducing, kernel.latent, x)


@Kuu.register(OutputPoints, LMC)
@Kuu.register(OutputPoints, AbstractMultiOutputKernel)
def _(inducing: OutputPoints, kernel: AbstractMultiOutputKernel) -> Dense:
    z = inducing.locations.value[None]
    size = inducing.num_inducing
    return Dense(kernel.cross(z, z).reshape(1, size, size))


@Kuf.register(OutputPoints, LMC)
@Kuf.register(OutputPoints, AbstractMultiOutputKernel)
def _(inducing: OutputPoints, kernel: AbstractMultiOutputKernel, x: Float[Array, "*b 1 N D"]):
    return _all_outputs(kernel.cross(x, inducing.locations.value[None]))


@Kuu.register(OutputPairs, LMC)
def _(inducing: OutputPairs, kernel: LMC) -> Dense:
    """Σ_l W_pl W_ql k_l(z, z') for the pairs' own outputs p, q only: L·M² [FRAMEWORK, eq. 47]."""
    z, own = inducing.locations.value[None], kernel.mixing.value[inducing.outputs]
    return Dense(einsum("ml,nl,lmn->mn", own, own, kernel.latent_cross(z, z))[None])


@Kuf.register(OutputPairs, LMC)
def _(inducing: OutputPairs, kernel: LMC, x: Float[Array, "*b 1 N D"]) -> Float[Array, "*b P M N"]:
    W = kernel.mixing.value
    latent = kernel.latent_cross(inducing.locations.value[None], x)
    return einsum("pl,ml,...lmn->...pmn", W, W[inducing.outputs], latent)


@Kuu.register(OutputPairs, AbstractMultiOutputKernel)
def _(inducing: OutputPairs, kernel: AbstractMultiOutputKernel) -> Dense:
    z, outputs = inducing.locations.value[None], inducing.outputs
    rows = jnp.arange(inducing.num_inducing)
    every = kernel.cross(z, z)
    return Dense(every[outputs[:, None], rows[:, None], outputs[None, :], rows[None, :]][None])


@Kuf.register(OutputPairs, AbstractMultiOutputKernel)
def _(inducing: OutputPairs, kernel: AbstractMultiOutputKernel, x: Float[Array, "*b 1 N D"]):
    every = kernel.cross(x, inducing.locations.value[None])
    chosen = every[..., inducing.outputs, jnp.arange(inducing.num_inducing)]
    return chosen.swapaxes(-1, -2)


@Kuu.register(Points, ProcessConvolution)
def _(inducing: Points, kernel: ProcessConvolution) -> Dense:
    """Inducing points in the latent process that all outputs smooth."""
    return Dense(kernel.latent_gram(inducing.locations.value)[None])


@Kuf.register(Points, ProcessConvolution)
def _(inducing: Points, kernel: ProcessConvolution, x: Float[Array, "*b 1 N D"]):
    return kernel.latent_cross(inducing.locations.value[None], x)


def _all_outputs(cross: Float[Array, "*b P N R M"]) -> Float[Array, "*b P R*M N"]:
    flat = cross.reshape(*cross.shape[:-2], cross.shape[-2] * cross.shape[-1])
    return flat.swapaxes(-1, -2)
