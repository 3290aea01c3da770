"""Function values at locations that were drawn."""

from __future__ import annotations

import equinox as eqx

from ..typing import Array, Float
from ._base import AbstractInducing


class DrawnPoints(AbstractInducing):
    """u_m = f(z_m) + noise, at locations [*s, 1, M, D] that may differ from draw to draw and aren't trained.

    The noise has `nugget` times the variance of f: it bounds how badly conditioned Kuu can get as locations move.
    """

    locations: Float[Array, "*s 1 M D"]
    nugget: float = eqx.field(static=True, default=0.0)

    @property
    def num_inducing(self) -> int:
        return self.locations.shape[-2]
