"""The contract of a predictive distribution."""

import abc
import importlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..errors import InputError, MissingDataError
from ..parameters import counted, html_table
from ..typing import Array, ArrayLike, Float, RandomKey

FEW_ROWS = 5
"""That a notebook shows."""


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

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={tuple(self.mean.shape)})"

    def _repr_html_(self) -> str:
        if self.mean.ndim != 2:
            return html_table((), (), repr(self))
        mean, stddev = (np.asarray(values) for values in (self.mean, self.stddev))
        rows = [[f"{value:.5g}" for pair in zip(*row, strict=True) for value in pair]
                for row in zip(mean[:FEW_ROWS], stddev[:FEW_ROWS], strict=True)]  # fmt: skip
        head = ["mean", "standard deviation"] * mean.shape[1]
        return html_table(head, rows, f"{self!r}: {counted(len(mean), 'row')}, of which the first")

    def to_frame(self, level: float = 0.9, names: Sequence[str] = ("y",)) -> Any:
        """A frame of pandas, or of polars where there is no pandas: mean, standard deviation and the ends of the
        central interval of every row, named after the outputs.

        >>> import jax.numpy as jnp
        >>> from dgpax.distributions import Gaussian
        >>> frame = Gaussian(jnp.zeros((3, 1)), jnp.ones((3, 1))).to_frame(0.9, ["rent"])
        >>> list(frame.columns)
        ['rent mean', 'rent std', 'rent low 0.9', 'rent high 0.9']
        """
        if self.mean.ndim != 2:
            raise InputError(f"to_frame() is for predictions of shape [N, P]; this one has shape {self.mean.shape}.")
        num_outputs = self.mean.shape[1]
        if tuple(names) == ("y",) and num_outputs > 1:
            names = [f"y{output}" for output in range(num_outputs)]
        if len(names) != num_outputs:
            raise InputError(f"to_frame(names=...) needs a name for each of {num_outputs} outputs; got {list(names)}.")
        low, high = self.interval(level)
        parts = {"mean": self.mean, "std": self.stddev, f"low {level:g}": low, f"high {level:g}": high}
        columns = {
            f"{name} {part}": np.asarray(values)[:, output]
            for output, name in enumerate(names)
            for part, values in parts.items()
        }
        return _frame(columns)

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


def _frame(columns: dict[str, np.ndarray]) -> Any:
    for library in ("pandas", "polars"):
        with suppress(ImportError):
            return importlib.import_module(library).DataFrame(columns)
    raise MissingDataError("A frame needs pandas or polars: pip install pandas.")


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
