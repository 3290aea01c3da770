"""The four kinds of parameter, and the converters that model fields use."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..errors import InputError
from ..typing import Array, Float
from ._base import AbstractParameter
from ._priors import AbstractPrior

FLOOR = 1e-6


def _as_float(value) -> Float[Array, "..."]:
    array = jnp.asarray(value)
    if jnp.issubdtype(array.dtype, jnp.floating) and not array.weak_type:
        return array
    if jnp.issubdtype(array.dtype, jnp.floating) or jnp.issubdtype(array.dtype, jnp.integer) or array.dtype == bool:
        return jnp.asarray(array, dtype=jnp.result_type(float))
    raise InputError(f"A parameter must be a real number or array; got dtype {array.dtype}.")


def _require(value: Float[Array, "..."], holds: Callable[[np.ndarray], np.ndarray], message: str) -> None:
    """Raise at construction, with the value in place of {}; inside jit it is left to the engine's finite check."""
    if not isinstance(value, Tracer) and not np.all(holds(np.asarray(value))):
        raise InputError(message.format(value))


class Real(AbstractParameter):
    """Any real value."""

    raw: Float[Array, "..."]
    trainable: bool = eqx.field(static=True)
    prior: AbstractPrior | None

    def __init__(self, value, *, trainable: bool = True, prior: AbstractPrior | None = None):
        self.raw = _as_float(value)
        self.trainable = trainable
        self.prior = prior
        _require(self.raw, np.isfinite, "A real parameter must be finite; got {}.")

    @property
    def value(self) -> Float[Array, "..."]:
        return self.raw

    @property
    def constraint(self) -> str:
        return "real"


class Positive(AbstractParameter):
    """value = floor + softplus(raw).

    >>> from dgpax.kernels import RBF
    >>> from dgpax.parameters import GammaPrior, Positive
    >>> kernel = RBF(Positive(0.5, prior=GammaPrior(2.0, 4.0)))
    >>> round(float(kernel.lengthscale.value), 6)
    0.5
    """

    raw: Float[Array, "..."]
    floor: float = eqx.field(static=True)
    trainable: bool = eqx.field(static=True)
    prior: AbstractPrior | None

    def __init__(self, value, *, floor: float = FLOOR, trainable: bool = True, prior: AbstractPrior | None = None):
        value = _as_float(value)
        _require(
            value,
            lambda known: np.isfinite(known) & (known > floor),
            f"A positive parameter must be finite and above its floor {floor:g}; got {{}}. "
            "For a smaller value pass Positive(value, floor=0.0).",
        )
        self.raw = _softplus_inverse(value, floor)
        self.floor = float(floor)
        self.trainable = trainable
        self.prior = prior

    @property
    def value(self) -> Float[Array, "..."]:
        return self.floor + jax.nn.softplus(self.raw)

    @property
    def constraint(self) -> str:
        return f"> {self.floor:g}"

    @property
    def log_jacobian(self) -> Float[Array, "..."]:
        return self.free

    @property
    def free(self) -> Float[Array, "..."]:
        return jnp.log(jax.nn.softplus(self.raw))

    def at_free(self, free):
        return _softplus_inverse(jnp.exp(free), 0.0)

    def with_value(self, value) -> Positive:
        return type(self)(value, floor=self.floor, trainable=self.trainable, prior=self.prior)


@jax.jit
def _softplus_inverse(value: Float[Array, "..."], floor: float | Float[Array, ""]) -> Float[Array, "..."]:
    above = value - floor
    return above + jnp.log(-jnp.expm1(-above))


class Bounded(AbstractParameter):
    """value = low + (high - low) sigmoid(raw)."""

    raw: Float[Array, "..."]
    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)
    trainable: bool = eqx.field(static=True)
    prior: AbstractPrior | None

    def __init__(self, value, low: float, high: float, *, trainable: bool = True, prior: AbstractPrior | None = None):
        if not low < high:
            raise InputError(f"Bounded needs low < high; got low={low}, high={high}.")
        value = _as_float(value)
        _require(
            value,
            lambda known: (known > low) & (known < high),
            f"A bounded parameter must start strictly between {low:g} and {high:g}; got {{}}.",
        )
        self.raw = jax.scipy.special.logit((value - low) / (high - low))
        self.low, self.high = float(low), float(high)
        self.trainable = trainable
        self.prior = prior

    @property
    def value(self) -> Float[Array, "..."]:
        return self.low + (self.high - self.low) * jax.nn.sigmoid(self.raw)

    @property
    def constraint(self) -> str:
        return f"in ({self.low:g}, {self.high:g})"

    @property
    def log_jacobian(self) -> Float[Array, "..."]:
        return jnp.log(self.high - self.low) + jax.nn.log_sigmoid(self.raw) + jax.nn.log_sigmoid(-self.raw)

    def with_value(self, value) -> Bounded:
        return type(self)(value, self.low, self.high, trainable=self.trainable, prior=self.prior)


class LowerTriangular(AbstractParameter):
    """value = lower triangle of raw; the diagonal may have either sign, as in a matrix root."""

    raw: Float[Array, "... M M"]
    trainable: bool = eqx.field(static=True)
    prior: AbstractPrior | None

    def __init__(self, value, *, trainable: bool = True, prior: AbstractPrior | None = None):
        self.raw = _as_float(value)
        if self.raw.ndim < 2 or self.raw.shape[-1] != self.raw.shape[-2]:
            raise InputError(f"A lower-triangular parameter must have shape (..., M, M); got {self.raw.shape}.")
        _require(self.raw, np.isfinite, "A lower-triangular parameter must be finite.")
        self.trainable = trainable
        self.prior = prior

    @property
    def value(self) -> Float[Array, "... M M"]:
        return jnp.tril(self.raw)

    @property
    def constraint(self) -> str:
        return "lower triangular"


def as_real(value) -> AbstractParameter:
    """Field converter: a number becomes a trainable `Real`; a parameter stays what it is."""
    return value if isinstance(value, AbstractParameter) else Real(value)


def as_positive(value) -> AbstractParameter:
    """Field converter: a number becomes a trainable `Positive`; a parameter stays what it is."""
    return value if isinstance(value, AbstractParameter) else Positive(value)


def as_lower_triangular(value) -> AbstractParameter:
    """Field converter: an array becomes a trainable `LowerTriangular`; a parameter stays what it is."""
    return value if isinstance(value, AbstractParameter) else LowerTriangular(value)


def fixed(value) -> AbstractParameter:
    """A value that isn't trained, exactly as given: `RBF(variance=fixed(1.0))`.

    >>> from dgpax.kernels import RBF
    >>> from dgpax.parameters import fixed
    >>> RBF(0.5, variance=fixed(1.0)).variance.trainable
    False
    """
    return Real(value, trainable=False)
