"""Matérn shapes as functions of the squared distance, with derivatives that are right at zero.

With s = √(c·r²) they form a ladder, each the derivative of the one above it up to a factor:
d/dr² (1 + s + s²/3) e⁻ˢ = −c/6 (1 + s) e⁻ˢ and d/dr² (1 + s) e⁻ˢ = −c/2 e⁻ˢ.
Only the lowest step, d/dr² e⁻ˢ = −√c/(2r) e⁻ˢ, is singular; it is set to zero at r = 0, where it is always
multiplied by a distance that vanishes (or, for Matérn 1/2 itself, where the symmetric derivative is zero), and so
near to it that its own derivative, of the order r⁻³, would overflow.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from ..typing import Array, Float


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def exponential(r2: Float[Array, "*s"], c: float) -> Float[Array, "*s"]:
    """e⁻ˢ, the shape of Matérn 1/2 for c = 1 [Rasmussen & Williams 2006, eq. 4.18]."""
    return jnp.exp(-jnp.sqrt(c * r2))


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def linear_exponential(r2: Float[Array, "*s"], c: float) -> Float[Array, "*s"]:
    """(1 + s) e⁻ˢ, the shape of Matérn 3/2 for c = 3 [Rasmussen & Williams 2006, eq. 4.17]."""
    s = jnp.sqrt(c * r2)
    return (1.0 + s) * jnp.exp(-s)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def quadratic_exponential(r2: Float[Array, "*s"], c: float) -> Float[Array, "*s"]:
    """(1 + s + s²/3) e⁻ˢ, the shape of Matérn 5/2 for c = 5 [Rasmussen & Williams 2006, eq. 4.17]."""
    s = jnp.sqrt(c * r2)
    return (1.0 + s + s**2 / 3.0) * jnp.exp(-s)


@exponential.defjvp
def _exponential_jvp(c, primals, tangents):
    (r2,) = primals
    value = exponential(r2, c)
    apart = r2 > float(jnp.finfo(r2.dtype).tiny) ** (2.0 / 3.0)
    slope = jnp.where(apart, -0.5 * c**0.5 / jnp.sqrt(jnp.where(apart, r2, 1.0)), 0.0)
    return value, slope * value * tangents[0]


@linear_exponential.defjvp
def _linear_exponential_jvp(c, primals, tangents):
    (r2,) = primals
    return linear_exponential(r2, c), -0.5 * c * exponential(r2, c) * tangents[0]


@quadratic_exponential.defjvp
def _quadratic_exponential_jvp(c, primals, tangents):
    (r2,) = primals
    return quadratic_exponential(r2, c), -c / 6.0 * linear_exponential(r2, c) * tangents[0]
