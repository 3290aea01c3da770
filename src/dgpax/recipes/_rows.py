"""Rows in a standard form, so that equal data give equal fits and data of similar size share compiled programs."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..data import Dataset
from ..errors import InputError
from ..inference import refuse_beyond_memory

SMALLEST = 64
DOUBLING_UP_TO = 512
STEP = 128
MANY_GAPS = 10


class Rows(NamedTuple):
    """A table as numbers, in host memory: inputs [N, D], targets [N, P], and how often every row counts (None: once).

    `gaps` are the columns of x that mark missing inputs, `circles` those that are places on circles (`data.Encoding`).
    With `num_classes`, targets are labels.
    """

    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None = None
    gaps: tuple[int, ...] = ()
    num_classes: int = 0
    input_names: tuple[str, ...] = ()
    circles: tuple[tuple[int, int], ...] = ()

    @property
    def counts(self) -> np.ndarray:
        """How often every row counts."""
        return np.ones(len(self.x)) if self.weights is None else self.weights

    @property
    def has_many_gaps(self) -> bool:
        """Whether at least ten rows have gaps: enough to learn what these do to the targets."""
        return int(np.sum(np.any(self.x[:, list(self.gaps)] > 0, axis=1))) >= MANY_GAPS

    def merged(self) -> Rows:
        """Equal rows become one that counts as often, in the order of their values; those of weight 0 are left out.

        The bound doesn't change by it, and the order of the rows then doesn't matter.
        """
        counted = self.counts > 0
        table = np.column_stack([self.x, self.y])[counted]
        distinct, which = np.unique(table, axis=0, return_inverse=True)
        x, y = np.split(distinct, [self.x.shape[1]], axis=1)
        return self._replace(x=x, y=y, weights=np.bincount(which.reshape(-1), self.counts[counted]))

    def repeated(self, inference: str) -> Dataset:
        """Without weights, each row as often as it counts."""
        total, columns = float(self.counts.sum()), self.x.shape[1] + self.y.shape[1]
        refuse_beyond_memory(
            total * columns * self.x.dtype.itemsize,
            f'inference="{inference}" repeats rows by their weights: {total:,.6g} rows, which',
            'Use inference="variational", which takes weights as they are, or divide them.',
        )
        counts = np.round(self.counts).astype(int)
        if np.any(counts != self.counts):
            raise InputError(
                f'inference="{inference}" takes whole numbers as sample weights, as it repeats the rows. Use '
                'inference="variational", which takes all.'
            )
        x, y = (jnp.asarray(np.repeat(values, counts, axis=0)) for values in (self.x, self.y))
        return Dataset(x, y, input_names=self.input_names)

    def padded(self) -> Dataset:
        """With rows of weight 0 up to one of few numbers of rows."""
        x, y = jnp.asarray(padded(self.x)), jnp.asarray(padded(self.y))
        weights = np.concatenate([self.counts, np.zeros(len(x) - len(self.x))])
        return Dataset(x, y, weights=jnp.asarray(weights), input_names=self.input_names)


def padded(values: np.ndarray) -> np.ndarray:
    """Filled up with copies of the first row to a suitable size."""
    copies = suitable_size(len(values)) - len(values)
    return np.concatenate([values, np.broadcast_to(values[:1], (copies, *values.shape[1:]))])


def suitable_size(num_rows: int) -> int:
    """A power of two, and above 512 a multiple of 128."""
    if num_rows > DOUBLING_UP_TO:
        return -(-num_rows // STEP) * STEP
    return max(SMALLEST, 1 << (num_rows - 1).bit_length())
