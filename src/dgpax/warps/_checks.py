"""What the warps ask of their knots."""

from __future__ import annotations

import numpy as np
from jax.core import Tracer

from ..errors import InputError


def check_knots(knots) -> None:
    """Two or more numbers in strictly increasing order, or an error."""
    if knots.ndim != 1 or knots.shape[0] < 2:
        raise InputError(
            f"A warp has one input and two or more knots: its knots must have shape (K,); got {knots.shape}."
        )
    if not isinstance(knots, Tracer) and np.any(np.asarray(knots[1:] <= knots[:-1])):
        raise InputError("The knots of a warp must increase strictly: sort them and leave out equal ones.")
