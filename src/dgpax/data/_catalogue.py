"""Named datasets: where their files are, that they are the right ones, and their standard splits."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..errors import InputError, MissingDataError, UnknownNameError
from ..parameters import counted
from ..settings import user_cache
from ._dataset import Dataset
from ._entries_other import OTHERS
from ._entries_uci import UCI
from ._entry import Entry

ENTRIES: dict[str, Entry] = {entry.name: entry for entry in (*UCI, *OTHERS)}


@dataclass(frozen=True, eq=False)
class NamedDataset:
    """A dataset of the catalogue, in raw units, all rows in the order of the source (training rows first).

    `x` is [N, D] and `y` is [N]: float64 for regression, as stored (integers, float32) for classification.
    `test_rows` is [splits, rows].
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    test_rows: np.ndarray
    input_names: tuple[str, ...]
    output_name: str
    task: str
    licence: str
    citation: str
    source: str

    def __repr__(self) -> str:
        size = f"{counted(len(self.x), 'row')}, {counted(self.x.shape[1], 'input')}"
        return f"NamedDataset({self.name!r}, {size}, {self.task} of {self.output_name!r})"

    @property
    def num_splits(self) -> int:
        return len(self.test_rows)

    def split(self, index: int) -> tuple[Dataset, Dataset]:
        """(train, test) of a standard split, the training rows in the order of the source."""
        if not 0 <= index < self.num_splits:
            advice = f"take an index from 0 to {self.num_splits - 1}" if self.num_splits else "use dgpax.data.split"
            raise InputError(f"{self.name} has {self.num_splits} standard splits; got index {index}; {advice}.")
        test = self.test_rows[index]
        train = np.setdiff1d(np.arange(len(self.x)), test)
        return self._dataset(train), self._dataset(test)

    def _dataset(self, rows: np.ndarray) -> Dataset:
        return Dataset(
            jnp.array(self.x[rows], float),
            jnp.array(self.y[rows, None], float),
            input_names=self.input_names,
            output_names=(self.output_name,),
        )


class CatalogueRow(NamedTuple):
    """What there is to know about a dataset before loading it."""

    name: str
    num_rows: int
    num_inputs: int
    task: str
    num_splits: int
    shipped: bool
    licence: str


@dataclass(frozen=True)
class Catalogue:
    """One row per dataset. `print` it or go through it."""

    rows: tuple[CatalogueRow, ...]

    def __iter__(self) -> Iterator[CatalogueRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        cells = [("name", "N", "D", "task", "splits", "shipped", "licence")]
        cells += [tuple(map(str, row)) for row in self.rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)


def names() -> tuple[str, ...]:
    """The names that `load` knows."""
    return tuple(ENTRIES)


def catalogue() -> Catalogue:
    """All named datasets; those that aren't shipped with dgpax must be in `data_folder()`."""
    return Catalogue(
        tuple(
            CatalogueRow(
                name=entry.name,
                num_rows=entry.num_rows,
                num_inputs=len(entry.input_names),
                task=entry.task,
                num_splits=entry.num_splits,
                shipped=entry.shipped,
                licence=entry.licence,
            )
            for entry in ENTRIES.values()
        )
    )


def data_folder() -> Path:
    """Where the files of the catalogue are looked for: $DGPAX_DATA, else `dgpax` in the user's cache folder."""
    if chosen := os.environ.get("DGPAX_DATA"):
        return Path(chosen)
    return user_cache()


def load(name: str) -> NamedDataset:
    """A dataset by name; its files are checked against the SHA-256 sums in the catalogue.

    >>> import dgpax
    >>> train, test = dgpax.load("energy").split(0)
    >>> train.num_rows, test.num_rows, train.input_names[:2]
    (691, 77, ('relative_compactness', 'surface_area'))
    """
    if name not in ENTRIES:
        raise UnknownNameError(f"There is no dataset {name!r}. There are: {', '.join(ENTRIES)}.")
    entry = ENTRIES[name]
    arrays: dict[str, np.ndarray] = {}
    for file, checksum in entry.files.items():
        with np.load(io.BytesIO(_checked_bytes(entry, file, checksum)), allow_pickle=False) as stored:
            arrays |= dict(stored)
    contents = entry.layout(arrays)
    dtype = float if entry.task == "regression" else None
    return NamedDataset(
        name=entry.name,
        x=np.asarray(contents.x, dtype),
        y=np.asarray(contents.y, dtype),
        test_rows=contents.test,
        input_names=entry.input_names,
        output_name=entry.output_name,
        task=entry.task,
        licence=entry.licence,
        citation=entry.citation,
        source=entry.source,
    )


def _checked_bytes(entry: Entry, file: str, checksum: str) -> bytes:
    folder = resources.files("dgpax.data") / "shipped" if entry.shipped else data_folder()
    path = folder / file
    if not path.is_file():
        raise MissingDataError(
            f"The dataset {entry.name!r} needs the file {file}, which isn't in {folder}. Put it there, or set the "
            f"environment variable DGPAX_DATA to the folder that has it. The data comes from {entry.source}; "
            f"the file that is wanted has the SHA-256 {checksum}."
        )
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != checksum:
        raise InputError(
            f"{path} isn't the file that dgpax knows: its SHA-256 is {found}, {checksum} was expected. "
            "It is damaged or another version; replace it."
        )
    return content
