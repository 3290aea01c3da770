"""The contract of a predictive distribution."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..errors import InputError
from ..typing import Array, ArrayLike, Float, RandomKey


class AbstractDistribution(eqx.Module):
    """A real random variable for each entry of [*batch, N, P]; every method works entry by entry.

    Arguments `y` and `p` broadcast against [*batch, N, P], so `quantile(p[:, None, None])` has a leading axis.
    """

    mean: eqx.AbstractVar[Float[Array, "*batch N P"]]
    variance: eqx.AbstractVar[Float[Array, "*batch N P"]]

    @abc.abstractmethod
    def cdf(self, y: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        """P(Y ≤ y)."""

    @abc.abstractmethod
    def log_prob(self, y: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        """Log density at y."""

    @abc.abstractmethod
    def quantile(self, p: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        """The smallest y with P(Y ≤ y) ≥ p."""

    @abc.abstractmethod
    def expected_distance(self, y: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        """E|Y − y|."""

    @abc.abstractmethod
    def expected_difference(self, other: "AbstractDistribution") -> Float[Array, "..."]:
        """E|Y − Y′| with Y from this distribution and Y′, independent of it, from the other."""

    @abc.abstractmethod
    def sample(self, key: RandomKey, num_samples: int) -> Float[Array, "num_samples *batch N P"]:
        """Independent draws, along a new leading axis."""

    @abc.abstractmethod
    def affine(self, shift: Float[ArrayLike, "..."], scale: Float[ArrayLike, "..."]) -> "AbstractDistribution":
        """The distribution of shift + scale · Y: how predictions return from scaled to original units."""

    @property
    def stddev(self) -> Float[Array, "*batch N P"]:
        """√variance."""
        return safe_sqrt(self.variance)

    @property
    def median(self) -> Float[Array, "*batch N P"]:
        return self.quantile(0.5)

    def interval(self, coverage: float) -> tuple[Float[Array, "*batch N P"], Float[Array, "*batch N P"]]:
        """The central interval that holds this much probability, the same in either tail."""
        tail = 0.5 * (1.0 - coverage)
        low, high = self.quantile(jnp.asarray([tail, 1.0 - tail]).reshape(2, *([1] * self.mean.ndim)))
        return low, high

    def crps(self, y: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        """Continuous ranked probability score, E|Y − y| − ½ E|Y − Y′|; smaller is better, in the units of y.

        Gneiting & Raftery 2007, eq. (21), with the sign turned.
        """
        return self.expected_distance(y) - 0.5 * self.expected_difference(self)


@jax.jit
def safe_sqrt(variance: Float[Array, "..."]) -> Float[Array, "..."]:
    """√variance with derivative 0, not ∞, at variance 0; NaN stays NaN."""
    positive = ~(variance <= 0)
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, variance, 1.0)), 0.0)


def as_probability(p: Float[ArrayLike, "..."], dtype) -> Float[Array, "..."]:
    """p in this dtype; outside [0, 1] it is refused, or NaN when it is only known inside jit."""
    p = jnp.asarray(p, dtype)
    if isinstance(p, Tracer):
        return jnp.where((p >= 0) & (p <= 1), p, jnp.nan)
    known = np.asarray(p)
    if not np.all((known >= 0) & (known <= 1)):
        raise InputError(f"A probability must lie between 0 and 1; got {p}. Pass 0.05, not 5, for five per cent.")
    return p
