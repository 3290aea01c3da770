"""`stream`: rows that don't fit into memory, as a feed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ...errors import InputError
from .._dataset import Dataset
from .._encoding import Encoding
from .._feed import AbstractFeed
from .._minibatch import batch_indices
from .._scaling import Scaling
from ._open import open_source
from ._reader import Reader
from ._scan import CHUNK_ROWS, in_order, scan
from ._source import Table

HEAD_ROWS = 5_000


class Streamed(AbstractFeed):
    """Rows that are read when their turn comes; `stream` makes it.

    The order is the keyed permutation of `batch_indices`, as in memory: the same batches, and a fit that goes on from a
    checkpoint sees what it would have seen.
    """

    reader: Reader = eqx.field(static=True)
    sample: Dataset
    overall: Scaling
    scaling: Scaling | None = None
    encoding: Encoding | None = eqx.field(static=True, default=None)
    """How the inputs of a table became numbers: `feed.encoding.apply(new_table)` are inputs to predict at."""

    @property
    def head(self):
        return self.sample

    @property
    def num_rows(self):
        return self.reader.table.source.num_rows

    @property
    def batch_size(self) -> int:
        return self.reader.batch_size

    @property
    def total_weight(self):
        return jnp.asarray(float(self.num_rows))

    @property
    def standard(self):
        return self.overall

    @property
    def in_batches(self):
        return True

    @property
    def identity(self):
        return self.num_rows, self.batch_size, self.sample, self.overall

    def prepared(self, head, scaling):
        return replace(self, sample=head, scaling=scaling)

    def block(self, key, start, count):
        return self.reader.block(key, start, count)

    def batch(self, block, key, step):
        index = step - block.first
        own = Dataset(block.x[index], block.y[index], self.num_rows / self.batch_size, block.rows[index])
        return own if self.scaling is None else self.scaling.dataset(own)


def stream(
    source: Any,
    *,
    target: str | int | Sequence[str | int],
    inputs: str | int | Sequence[str | int] | None = None,
    batch_size: int,
    scan_rows: int | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> Streamed:
    """Rows as a feed that holds a few batches in memory, however many there are.

    `source` is a .parquet file or a folder of such files, a .npy file [N, C], a data frame, an array, or an object with
    `num_rows` and `read(rows)`, which gives an array [B, C] for row numbers (see `RowSource`). `target` and `inputs`
    are columns, by number, or by name if the source has names; all columns but the target are inputs unless told
    otherwise.

    Text, categories, dates and gaps among the inputs of tables become numbers as `Encoding` says. A Parquet table is
    written as numbers into a file in the folder `cache` (that of the user, if None), once as long as it doesn't change;
    it is this file that batches are read from. That needs pyarrow: the extra `streams`.

    One pass over all rows finds gaps and the scaling, over `scan_rows` random ones if given. Some thousand random rows,
    the `head`, are kept for starting values and reports: `deep_gp` and its like take the stream in place of data.

    >>> import numpy as np
    >>> import dgpax
    >>> from dgpax.inference import NaturalGradient
    >>> class Wave:
    ...     num_rows = 1_000_000
    ...     def read(self, rows):
    ...         x = rows / self.num_rows
    ...         return np.stack([x, np.sin(6.0 * x)], axis=1)
    >>> feed = dgpax.data.stream(Wave(), target=1, batch_size=100, scan_rows=10_000)
    >>> engine = NaturalGradient(max_steps=10)
    >>> fitted = dgpax.fit(dgpax.deep_gp(feed, 1, 5), feed, "variational", engine=engine, progress=False)
    >>> fitted.report.num_rows
    1000000
    """
    opened = open_source(source, target, inputs, cache)
    table = Table.of(opened.source, opened.target, opened.inputs)
    num_rows = table.source.num_rows
    if not 1 <= batch_size <= num_rows:
        raise InputError(f"stream(batch_size=...) must be between 1 and {num_rows:,}, the rows; got {batch_size}.")
    if scan_rows is not None and scan_rows < 1:
        raise InputError(f"stream(scan_rows=...) must be at least 1, or None for all rows; got {scan_rows}.")
    some = None if scan_rows is None or scan_rows >= num_rows else _random_rows(num_rows, scan_rows)
    chunks = in_order(num_rows) if some is None else iter(np.array_split(some, -(-len(some) // CHUNK_ROWS)))
    overall = scan(table, chunks)
    return Streamed(Reader(table, batch_size), _head(table), overall, encoding=opened.encoding)


def _random_rows(num_rows: int, number: int) -> np.ndarray:
    return np.asarray(batch_indices(jr.key(0), 0, number, num_rows)).astype(np.int64)


def _head(table: Table) -> Dataset:
    """Random rows, whose scale makes them stand for all."""
    num_rows = table.source.num_rows
    x, y = table.read(_random_rows(num_rows, min(HEAD_ROWS, num_rows)))
    scale = num_rows / len(x)
    return Dataset(
        jnp.asarray(x), jnp.asarray(y), scale, input_names=table.input_names, output_names=table.output_names
    )
