"""The normal cumulative distribution in the log domain."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy import special, stats

from ..typing import Array, Float

FAR = -60.0


@jax.custom_jvp
def log_ndtr(z: Float[Array, "..."]) -> Float[Array, "..."]:
    """log Φ(z), with a derivative that is right however negative z is."""
    return special.log_ndtr(z)


@log_ndtr.defjvp
def _log_ndtr_jvp(primals, tangents):
    """φ(z)/Φ(z), for z ≪ 0 by its asymptotic series w + 1/w − 2/w³ + 10/w⁵, w = −z   [Abramowitz & Stegun 26.2.12].

    JAX's own rule, exp(log φ − log Φ), is a difference of numbers of size z²/2, whose rounding error overflows.
    """
    (z,), (tangent,) = primals, tangents
    far = z < FAR
    near = jnp.where(far, FAR, z)
    w = jnp.where(far, -z, -FAR)
    ratio = jnp.where(
        far,
        w + (1.0 - (2.0 - 10.0 / w**2) / w**2) / w,
        jnp.exp(stats.norm.logpdf(near) - special.log_ndtr(near)),
    )
    return log_ndtr(z), ratio * tangent
