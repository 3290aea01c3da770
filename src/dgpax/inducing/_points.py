"""Function values at some locations."""

from __future__ import annotations

import equinox as eqx

from ..errors import InputError
from ..parameters import AbstractParameter, as_real
from ._base import AbstractInducing


class Points(AbstractInducing):
    """u_m = f(z_m). Locations are [M, D], or [P, M, D] for a set of its own per output."""

    locations: AbstractParameter = eqx.field(converter=as_real)

    def __check_init__(self):
        if len(self.locations.shape) not in (2, 3) or 0 in self.locations.shape:
            raise InputError(
                f"Points(locations=...) needs shape (M, D), or (P, M, D) for separate ones; got {self.locations.shape}."
            )

    @property
    def num_inducing(self) -> int:
        return self.locations.shape[-2]
