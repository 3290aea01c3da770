"""What exact and collapsed inference share: one layer, Gaussian noise."""

from __future__ import annotations

import jax.numpy as jnp

from ..errors import InputError
from ..layers import GPLayer, last_gp
from ..likelihoods import GaussianNoise
from ..model import DeepGP
from ..typing import Array, Float


def one_gp_layer(model: DeepGP) -> GPLayer:
    """The only layer of a model that has a closed form; otherwise an error that says what to do."""
    if len(model.layers) != 1:
        raise InputError(
            f"Exact and collapsed inference need one layer; this model has {len(model.layers)}. "
            'Say how: fit(model, data, "variational"), or "sghmc".'
        )
    if not isinstance(model.likelihood, GaussianNoise):
        raise InputError(
            f"Exact and collapsed inference need GaussianNoise; this model has {type(model.likelihood).__name__}. "
            'Say how: fit(model, data, "variational"), or "sghmc".'
        )
    return last_gp(model.layers)


def noise_variances(model: DeepGP) -> Float[Array, " Q"]:
    """[1] for one noise variance, [P] for one per output."""
    likelihood = model.likelihood
    assert isinstance(likelihood, GaussianNoise)  # noqa: S101 - one_gp_layer has checked it
    return jnp.atleast_1d(likelihood.noise_variance.value)


def noisy_gram(model: DeepGP, x: Float[Array, "N D"]) -> Float[Array, "Q N N"]:
    """K + σ²I, with Q = 1 if all outputs share it."""
    layer = one_gp_layer(model)
    noise = noise_variances(model)[:, None, None] * jnp.eye(x.shape[0], dtype=x.dtype)
    return layer.independent_kernel().gram(x[None]) + noise


def stack_outputs(y: Float[Array, "N P"], num_matrices: int) -> Float[Array, "Q N K"]:
    """Right-hand sides for Q matrices: all P columns for one shared matrix, else one column each."""
    return y[None] if num_matrices == 1 else jnp.swapaxes(y, 0, 1)[..., None]
