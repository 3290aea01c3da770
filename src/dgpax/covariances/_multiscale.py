"""Rules for Gaussian windows."""

from __future__ import annotations

from ..inducing import Multiscale
from ..kernels import RBF, Functional, Window, functional_cross, functional_gram
from ..linalg import Dense
from ..typing import Array, Float
from ._functionals import with_process_axis
from ._rules import Kuf, Kuu


@Kuu.register(Multiscale, RBF)
def _(inducing: Multiscale, kernel: RBF) -> Dense:
    """σ² Π_d ℓ/s exp(−(z − z')²/2s²), s² = ℓ² + w² + w'² [Walder et al. 2008, eq. 6]."""
    return Dense(functional_gram(kernel, _functional(inducing)))


@Kuf.register(Multiscale, RBF)
def _(inducing: Multiscale, kernel: RBF, x: Float[Array, "*b 1 N D"]) -> Float[Array, "*b Q M N"]:
    return functional_cross(kernel, _functional(inducing), Functional(x))


def _functional(inducing: Multiscale) -> Functional:
    z, w = (with_process_axis(part.value) for part in (inducing.locations, inducing.widths))
    return Functional(z, window=Window(gaussian=w))
