"""Classes in an order."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..parameters import AbstractParameter, Positive, Real, as_positive
from ..typing import Array, Float
from ._labels import AbstractScalarClassification
from ._normal import log_ndtr
from ._scalar import AbstractQuadratureLikelihood


class Ordinal(AbstractQuadratureLikelihood, AbstractScalarClassification):
    """Labels 0 … C−1: y is the bin that f + N(0, scale²) falls into   [Chu & Ghahramani 2005, section 2].

    C−1 `edges` between the bins, kept increasing: the first is any real number, the steps to the next are positive.
    """

    first_edge: AbstractParameter
    edge_steps: AbstractParameter
    scale: AbstractParameter
    quadrature_order: int = eqx.field(static=True, default=20)

    def __init__(self, edges, scale: float | AbstractParameter = 1.0, quadrature_order: int = 20):
        edges = np.asarray(edges, float)
        if edges.ndim != 1 or edges.size == 0 or not np.all(np.diff(edges) > 0):
            raise InputError(
                f"Ordinal needs increasing edges of shape (C - 1,) for C classes; got {edges}. "
                "Sort them and merge equal ones."
            )
        self.first_edge = Real(edges[0])
        self.edge_steps = Positive(np.diff(edges), floor=0.0)
        self.scale = as_positive(scale)
        self.quadrature_order = quadrature_order

    @property
    def edges(self) -> Float[Array, " edges"]:
        first = self.first_edge.value
        return jnp.concatenate([first[None], first + jnp.cumsum(self.edge_steps.value)])

    @property
    def num_classes(self) -> int:
        return self.edge_steps.raw.shape[0] + 2

    def log_density(self, f, y):
        return self._log_bin_probability(f, self.scale.value, y)

    def predictive_log_density(self, mean, variance, y):
        """The sum f + noise is N(mean, scale² + variance), so the same bins under a wider normal."""
        return self._log_bin_probability(mean, jnp.sqrt(self.scale.value**2 + variance), y)

    def _log_bin_probability(self, location, width, y):
        """log(Φ(b) − Φ(a)) for the standardised ends a < b of bin y, the outer bins being open.

        In the right half b and a are mirrored, so that both cdfs are small and nothing cancels in the tails.
        """
        edges = self.edges
        last = edges.shape[0]
        bin_ = y.astype(int)
        lowest, highest = bin_ == 0, bin_ == last
        a = (edges[jnp.maximum(bin_ - 1, 0)] - location) / width
        b = (edges[jnp.minimum(bin_, last - 1)] - location) / width
        mirrored = highest | (~lowest & (a + b > 0))
        lower, upper = jnp.where(mirrored, -b, a), jnp.where(mirrored, -a, b)
        ratio = jnp.where(lowest | highest, -1.0, log_ndtr(lower) - log_ndtr(upper))
        return log_ndtr(upper) + jnp.where(lowest | highest, 0.0, jnp.log(-jnp.expm1(ratio)))
