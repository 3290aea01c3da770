"""The box that a simulator's inputs come from: numbers between bounds, whole numbers, and one of several values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..typing import Array, Float


class Between(NamedTuple):
    """Any number from `low` to `high`; a plain pair (low, high) means the same."""

    low: float
    high: float


class Whole(NamedTuple):
    """Whole numbers from `low` to `high`, both included."""

    low: int
    high: int


class OneOf(NamedTuple):
    """One of these values. Numbers are one column of the model's inputs; words are a column each, 1 where it is this
    word and 0 elsewhere, in alphabetical order, as `data.Encoding` has them."""

    values: tuple[Any, ...]


Dimension = Between | Whole | OneOf


class Space(NamedTuple):
    """All dimensions of a box. Rows [N, E] are what the model is given; in a unit cube [N, D] every dimension has one
    coordinate, whatever it is."""

    dimensions: tuple[Dimension, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, bounds: Any) -> Space:
        """From pairs (low, high), `Between`, `Whole` and `OneOf`, one per input: in a list, or in a dictionary by the
        inputs' names; or from an array [D, 2]."""
        if isinstance(bounds, Space):
            return bounds
        named = isinstance(bounds, Mapping)
        names = tuple(map(str, bounds)) if named else ()
        entries = list(bounds.values()) if named else _listed(bounds)
        names = names or tuple(f"x{index}" for index in range(len(entries)))
        if not entries:
            raise InputError("bounds are empty. Give a pair (low, high) for every input.")
        return cls(tuple(_checked(name, entry) for name, entry in zip(names, entries, strict=True)), names)

    @property
    def columns(self) -> tuple[str, ...]:
        """What the columns of the model's inputs are called."""
        both = zip(self.names, self.dimensions, strict=True)
        return tuple(column for name, own in both for column in _columns(name, own))

    @property
    def free(self) -> np.ndarray:
        """Which dimensions can be moved by a little [D]."""
        return np.array([isinstance(own, Between) for own in self.dimensions])

    @property
    def size(self) -> float:
        """How many different rows there are; infinite where a dimension is continuous."""
        return math.prod(
            (math.inf if isinstance(own, Between) else len(_values(own)) for own in self.dimensions), start=1.0
        )

    def all(self) -> Float[np.ndarray, "N D"]:
        """All points of a finite box, in the unit cube."""
        return np.array(list(product(*[_centres(len(_values(own))) for own in self.dimensions])))

    def snapped(self, u: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N D"]:
        """The nearest points of the unit cube that stand for a row."""
        columns = [_snapped(own, u[:, index]) for index, own in enumerate(self.dimensions)]
        return np.clip(np.stack(columns, axis=1), 0.0, 1.0)

    def rows(self, u: Float[Array, "N D"]) -> Float[Array, "N E"]:
        """From the unit cube to rows; can be differentiated where a dimension is free."""
        return jnp.concatenate([_rows(own, u[:, index]) for index, own in enumerate(self.dimensions)], axis=1)

    def units(self, rows: Float[np.ndarray, "N E"]) -> Float[np.ndarray, "N D"]:
        """The way back, for rows inside the box or outside of it."""
        ends = np.array(list(accumulate(len(_columns("", own)) for own in self.dimensions)))
        parts = np.split(rows, ends[:-1], axis=1)
        return np.stack([_units(own, part) for own, part in zip(self.dimensions, parts, strict=True)], axis=1)

    def words(self, rows: Float[np.ndarray, "N E"]) -> list[dict[str, Any]]:
        """Rows as a person writes them: every input by its name, categories as they were given."""
        u = self.units(np.asarray(rows))
        return [
            {name: _word(own, value) for name, own, value in zip(self.names, self.dimensions, row, strict=True)}
            for row in u
        ]

    def has_words(self, name: str) -> bool:
        """Whether this input is one of several words."""
        return _is_words(self.dimensions[self.names.index(name)])

    def word(self, index: int, u: float) -> Any:
        """A value of one dimension as a person writes it, from the unit cube."""
        return _word(self.dimensions[index], u)

    def encoded(self, rows: Sequence[Mapping[str, Any] | Sequence[Any]]) -> Float[np.ndarray, "N E"]:
        """From rows as a person writes them, by name or in order. Numbers may lie outside of the box; values that a
        dimension doesn't have are refused."""
        return np.array([self._encoded(number, row) for number, row in enumerate(rows)], float)

    def _encoded(self, number: int, row: Mapping[str, Any] | Sequence[Any]) -> list[float]:
        if isinstance(row, Mapping):
            missing = [name for name in self.names if name not in row]
            if missing:
                raise InputError(f"Row {number} has no {', '.join(missing)}; it has {', '.join(map(str, row))}.")
            row = [row[name] for name in self.names]
        if len(row) != len(self.names):
            raise InputError(f"Row {number} has {len(row)} values; there are {len(self.names)} inputs: {self.names}.")
        both = zip(self.names, self.dimensions, row, strict=True)
        return [entry for name, own, value in both for entry in _encoded(number, name, own, value)]


def _listed(bounds: Any) -> list[Any]:
    if isinstance(bounds, np.ndarray | jax.Array) and (bounds.ndim != 2 or bounds.shape[1] != 2):
        raise InputError(f"bounds as an array are [D, 2], low and high of every input; got shape {bounds.shape}.")
    if isinstance(bounds, str) or not hasattr(bounds, "__iter__"):
        raise InputError(f"bounds are a list or dictionary of pairs (low, high); got {bounds!r}.")
    return list(bounds)


def _checked(name: str, entry: Any) -> Dimension:
    if isinstance(entry, OneOf):
        values = tuple(entry.values)
        if len(set(values)) < 2 or len(set(values)) < len(values):
            raise InputError(f"The bounds of {name!r} need two values or more, all different; got OneOf({values!r}).")
        if any(isinstance(value, str) for value in values) and not all(isinstance(value, str) for value in values):
            raise InputError(
                f"The bounds of {name!r} mix words and numbers: OneOf({values!r}). Make all of them words."
            )
        return OneOf(tuple(sorted(values)))
    try:
        low, high = (float(value) for value in entry)
    except (TypeError, ValueError) as error:
        wanted = "a pair (low, high), Whole(low, high) or OneOf(values)"
        raise InputError(f"The bounds of {name!r} must be {wanted}; got {entry!r}.") from error
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"The bounds of {name!r} must be finite; got ({low:g}, {high:g}).")
    if low == high:
        raise InputError(
            f"The input {name!r} is constant, from {low:g} to {high:g}. Leave it out, or widen its bounds."
        )
    if low > high:
        raise InputError(f"The bounds of {name!r} are upside down: ({low:g}, {high:g}). The lower one comes first.")
    if not isinstance(entry, Whole):
        return Between(low, high)
    if low != round(low) or high != round(high):
        raise InputError(f"Whole(low, high) of {name!r} needs whole numbers; got ({low:g}, {high:g}).")
    return Whole(int(low), int(high))


def _is_words(own: Dimension) -> bool:
    return isinstance(own, OneOf) and isinstance(own.values[0], str)


def _values(own: Dimension) -> Sequence[Any]:
    """All that there are; none of a continuous dimension, which has too many."""
    if isinstance(own, OneOf):
        return own.values
    return range(own.low, own.high + 1) if isinstance(own, Whole) else ()


def _columns(name: str, own: Dimension) -> list[str]:
    return [f"{name}={value}" for value in _values(own)] if isinstance(own, OneOf) and _is_words(own) else [name]


def _centres(count: int) -> np.ndarray:
    return (np.arange(count) + 0.5) / count


def _index(count: int, u: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(np.floor(u * count), 0, count - 1), int)


def _snapped(own: Dimension, u: np.ndarray) -> np.ndarray:
    if isinstance(own, Between):
        return u
    count = len(_values(own))
    return _centres(count)[_index(count, u)]


def _rows(own: Dimension, u: Float[Array, " N"]) -> Float[Array, "N _"]:
    if isinstance(own, Between):
        return (own.low + u * (own.high - own.low))[:, None]
    count = len(_values(own))
    index = jnp.clip(jnp.floor(u * count), 0, count - 1).astype(int)
    if _is_words(own):
        return jax.nn.one_hot(index, count, dtype=u.dtype)
    if isinstance(own, Whole):
        return (own.low + index.astype(u.dtype))[:, None]
    return jnp.asarray(own.values, u.dtype)[index][:, None]


def _units(own: Dimension, columns: Float[np.ndarray, "N _"]) -> Float[np.ndarray, " N"]:
    if isinstance(own, Between):
        return (columns[:, 0] - own.low) / (own.high - own.low)
    count = len(_values(own))
    if _is_words(own):
        return _centres(count)[np.argmax(columns, axis=1)]
    if isinstance(own, Whole):
        return (columns[:, 0] - own.low + 0.5) / count
    return _centres(count)[np.argmin(np.abs(columns - np.asarray(own.values, float)), axis=1)]


def _word(own: Dimension, u: float) -> Any:
    if isinstance(own, Between):
        return float(own.low + u * (own.high - own.low))
    return _values(own)[int(_index(len(_values(own)), np.asarray(u)))]


def _encoded(number: int, name: str, own: Dimension, value: Any) -> list[float]:
    if isinstance(own, OneOf) and _is_words(own):
        if value not in own.values:
            raise InputError(f"Row {number} has {name} = {value!r}; there are {', '.join(map(str, own.values))}.")
        return [float(value == known) for known in own.values]
    try:
        number_there = float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"Row {number} has {name} = {value!r}, which isn't a number.") from error
    if not math.isfinite(number_there):
        raise InputError(f"Row {number} has {name} = {value!r}. An input must be finite; only outputs may be missing.")
    if isinstance(own, OneOf) and number_there not in [float(known) for known in own.values]:
        raise InputError(f"Row {number} has {name} = {value!r}; there are {', '.join(map(str, own.values))}.")
    if isinstance(own, Whole) and number_there != round(number_there):
        raise InputError(f"Row {number} has {name} = {value!r}; it takes whole numbers.")
    return [number_there]
