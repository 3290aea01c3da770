"""Gaussian-windowed averages of f."""

from __future__ import annotations

import equinox as eqx
import numpy as np
from jax.core import Tracer

from ..errors import InputError
from ..parameters import AbstractParameter, as_positive, as_real
from ._base import AbstractInducing


class Multiscale(AbstractInducing):
    """u_m = ∫ f(x) N(x; z_m, diag(w_m²)) dx, with locations z and widths w, both [M, D] or [P, M, D].

    Width zero (only as `fixed(0.0)`) is f(z_m). GPflow's `Multiscale` has the same windows with another
    parameter s, which grows with the length scale: w² = (ℓ + s)² − ℓ² [Walder et al. 2008; FRAMEWORK, sec. 6.2].
    """

    locations: AbstractParameter = eqx.field(converter=as_real)
    widths: AbstractParameter = eqx.field(converter=as_positive)

    def __check_init__(self):
        locations, widths = self.locations.shape, self.widths.value
        if len(locations) not in (2, 3) or widths.shape != locations:
            raise InputError(
                "Multiscale(locations, widths) needs both of shape (M, D), or (P, M, D) for separate ones; got "
                f"{locations} and {widths.shape}. For one width for all use jnp.full_like(locations, width)."
            )
        if not isinstance(widths, Tracer) and bool(np.any(widths < 0)):
            raise InputError("Multiscale(widths=...) are standard deviations and must be positive.")

    @property
    def num_inducing(self) -> int:
        return self.locations.shape[-2]
