"""The exposure of counts: area, time or people at risk."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..errors import InputError
from ..typing import Array, Float


def as_exposure(value) -> Float[Array, "..."]:
    """Field converter: a positive constant, in floating point."""
    array = jnp.asarray(value, jnp.result_type(value, float))
    if not isinstance(array, Tracer) and not np.all(np.isfinite(array) & (np.asarray(array) > 0)):
        raise InputError(f"An exposure must be positive and finite; got {value}. Leave out the rows without exposure.")
    return array
