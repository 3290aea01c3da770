"""Rows in a standard form, so that equal data give equal fits and data of similar size share compiled programs."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..data import Dataset
from ..errors import InputError

SMALLEST = 64
DOUBLING_UP_TO = 512
STEP = 128


class Rows(NamedTuple):
    """Inputs, targets and weights in host memory."""

    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray

    def merged(self) -> Rows:
        """Equal rows become one that counts as often, in the order of their values; those of weight 0 are left out.

        The bound doesn't change by it, and the order of the rows then doesn't matter.
        """
        counted = self.weights > 0
        table = np.column_stack([self.x, self.y])[counted]
        distinct, which = np.unique(table, axis=0, return_inverse=True)
        weights = np.bincount(which.reshape(-1), self.weights[counted])
        return Rows(distinct[:, : self.x.shape[1]], distinct[:, self.x.shape[1] :], weights)

    def repeated(self, inference: str) -> Dataset:
        """Without weights, each row as often as it counts."""
        counts = np.round(self.weights).astype(int)
        if np.any(counts != self.weights):
            raise InputError(
                f'inference="{inference}" takes whole numbers as sample weights, as it repeats the rows. Use '
                'inference="variational", which takes all.'
            )
        return Dataset(jnp.asarray(np.repeat(self.x, counts, axis=0)), jnp.asarray(np.repeat(self.y, counts, axis=0)))

    def padded(self) -> Dataset:
        """With rows of weight 0 up to one of few numbers of rows."""
        padding = suitable_size(len(self.x)) - len(self.x)

        def pad(values: np.ndarray) -> np.ndarray:
            return np.concatenate([values, np.broadcast_to(values[:1], (padding, *values.shape[1:]))])

        weights = np.concatenate([self.weights, np.zeros(padding)])
        return Dataset(jnp.asarray(pad(self.x)), jnp.asarray(pad(self.y)), weights=jnp.asarray(weights))


def suitable_size(num_rows: int) -> int:
    """A power of two, and above 512 a multiple of 128."""
    if num_rows > DOUBLING_UP_TO:
        return -(-num_rows // STEP) * STEP
    return max(SMALLEST, 1 << (num_rows - 1).bit_length())
