"""The two tables, and the rule for points, which holds for every kernel."""

from __future__ import annotations

from ..inducing import Points
from ..kernels import AbstractKernel
from ..linalg import Dense
from ..typing import Array, Float
from ._table import RuleTable

Kuu = RuleTable(
    "Kuu",
    "Covariance of the inducing outputs: an operator of size M, with a leading axis Q (1 or P).",
    "inducing, kernel",
)
Kuf = RuleTable(
    "Kuf",
    "Covariance of the inducing outputs and f(x): [..., Q, M, N] for x of shape [..., 1, N, D].",
    "inducing, kernel, x",
)


@Kuu.register(Points, AbstractKernel)
def _(inducing: Points, kernel: AbstractKernel) -> Dense:
    return Dense(kernel.gram(_with_output_axis(inducing)))


@Kuf.register(Points, AbstractKernel)
def _(inducing: Points, kernel: AbstractKernel, x: Float[Array, "*b 1 N D"]) -> Float[Array, "*b Q M N"]:
    return kernel.cross(_with_output_axis(inducing), x)


def _with_output_axis(inducing: Points) -> Float[Array, "Q M D"]:
    locations = inducing.locations.value
    return locations if locations.ndim == 3 else locations[None]
