"""Mean, deviation and range of every column, in one pass over any number of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from .._scaling import FLAT_BELOW, Scaling
from ._source import Table

CHUNK_ROWS = 100_000


class Moments(NamedTuple):
    """Of some rows; `squares` is the sum of squared deviations from the mean. Values are in `Units`."""

    count: int
    mean: np.ndarray
    squares: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> Moments:
        mean = values.mean(axis=0)
        centred = values - mean
        correction = centred.mean(axis=0)
        squares = np.sum((centred - correction) ** 2, axis=0)
        return cls(len(values), mean + correction, squares, values.min(axis=0), values.max(axis=0))

    def and_of(self, other: Moments) -> Moments:
        """Of both together [Chan, Golub & LeVeque 1983, eq. 2.1]."""
        count = self.count + other.count
        change = other.mean - self.mean
        return Moments(
            count,
            self.mean + change * (other.count / count),
            self.squares + other.squares + change**2 * (self.count / count * other.count),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )


class Units(NamedTuple):
    """Values count from those of the first row, in units of the largest change from there in the first chunk.

    So no square over- or underflows, and an offset costs no digits.
    """

    origin: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> Units:
        largest = np.max(np.abs(values - values[0]), axis=0)
        return cls(values[0], np.where(largest > 0, largest, 1.0))


def scan(table: Table, rows: Iterator[np.ndarray]) -> Scaling:
    """Standardises the columns as `standardise` does, from a pass over chunks of rows."""
    units, total = None, None
    for numbers in rows:
        values = np.concatenate(table.read(numbers), axis=1).astype(np.float64)
        units = Units.of(values) if units is None else units
        own = Moments.of((values - units.origin) / units.size)
        total = own if total is None else total.and_of(own)
    assert total is not None and units is not None  # noqa: S101 - there is at least one row
    return _scaling(total, units, len(table.inputs))


def in_order(num_rows: int) -> Iterator[np.ndarray]:
    """The numbers of all rows, chunk by chunk."""
    for start in range(0, num_rows, CHUNK_ROWS):
        yield np.arange(start, min(start + CHUNK_ROWS, num_rows), dtype=np.int64)


def _scaling(total: Moments, units: Units, num_inputs: int) -> Scaling:
    """A flat column has scale 1 and the middle of its range as mean."""
    mean, low, high = (units.origin + units.size * part for part in (total.mean, total.low, total.high))
    deviation = units.size * np.sqrt(total.squares / total.count)
    flat = deviation <= FLAT_BELOW[jnp.result_type(float).name] * np.maximum(np.abs(low), np.abs(high))
    mean = np.where(flat, low + 0.5 * (high - low), mean)
    scale = np.where(flat, 1.0, deviation)
    constant = flat[:num_inputs] & (total.count > 1)
    parts = mean[:num_inputs], scale[:num_inputs], mean[num_inputs:], scale[num_inputs:]
    return Scaling(*(jnp.asarray(part) for part in parts), x_constant=jnp.asarray(constant))
