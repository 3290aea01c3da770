"""Hyperparameters of the top layer, improved in the maximisation step."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax

from ..typing import Array, Float, Scalar
from ._bound import collapsed_bound
from ._initial import LEAST_NOISE
from ._problem import Posterior
from ._start import like

LEARNING_RATE = 0.02


class _Logarithms(NamedTuple):
    lengthscale: Float[Array, "..."]
    variance: Float[Array, ""]
    noise_variance: Float[Array, ""]


def improve_hyperparameters(
    posterior: Posterior, features: Float[Array, "S N E"], num_updates: int, *, noise_known: bool
) -> Posterior:
    """Steps of Adam up Σ_s F_V in the top layer's length scales and variance and, unless it is known, the noise.

    The particles' features are held, as in the exchange of inducing points, and so are the hidden layers' kernels.
    """
    kernel = posterior.prior.top.kernel
    values = kernel.lengthscale.value, kernel.variance.value, posterior.noise_variance
    start = _Logarithms(*(jnp.log(value) for value in values))
    optimiser = optax.adam(LEARNING_RATE)

    def loss(logarithms: _Logarithms) -> Scalar:
        changed = _with(posterior, logarithms, noise_known=noise_known)
        return -mean_bound(changed, features)

    def update(carry, _):
        logarithms, state = carry
        step, state = optimiser.update(jax.grad(loss)(logarithms), state)
        return (jax.tree.map(jnp.add, logarithms, step), state), None

    (end, _), _ = lax.scan(update, (start, optimiser.init(start)), length=num_updates)
    better = loss(end) < loss(start)
    chosen = jax.tree.map(lambda new, old: jnp.where(better, new, old), end, start)
    return _with(posterior, chosen, noise_known=noise_known)


def _with(posterior: Posterior, logarithms: _Logarithms, *, noise_known: bool) -> Posterior:
    top = posterior.prior.top
    kernel = like(top.kernel, jnp.exp(logarithms.lengthscale), jnp.exp(logarithms.variance))
    upper = (*posterior.prior.middle, eqx.tree_at(lambda t: t.kernel, top, kernel))
    noise = jnp.maximum(jnp.exp(logarithms.noise_variance), LEAST_NOISE)
    return eqx.tree_at(
        lambda p: (p.prior.upper, p.noise_variance),
        posterior,
        (upper, posterior.noise_variance if noise_known else noise),
    )


def mean_bound(posterior: Posterior, features: Float[Array, "S N E"]) -> Scalar:
    """F_t, the mean of F_V over the particles [STRIDE, section 3.2]."""
    rows = posterior.top.inducing
    assert rows is not None  # noqa: S101

    @jax.checkpoint
    def bound(f):
        return collapsed_bound(posterior.prior.top, f, rows, posterior.y, posterior.noise_variance)

    return jnp.mean(lax.map(bound, features))
