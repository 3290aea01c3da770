"""Missing outputs, written once."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp

from ..typing import Array, Float


def sum_observed(
    log_density: Callable[[Float[Array, "*shape P"]], Float[Array, "*batch P"]],
    y: Float[Array, "*shape P"],
    member: float,
) -> Float[Array, "*batch"]:
    """Sum of an elementwise log density over the outputs that aren't NaN.

    Where y is missing the density is evaluated at a valid target instead and then dropped, so that neither the
    value nor the gradient ever meets a NaN.
    """
    observed = ~jnp.isnan(y)
    return jnp.sum(jnp.where(observed, log_density(jnp.where(observed, y, member)), 0.0), axis=-1)
