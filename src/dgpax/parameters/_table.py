"""A readable table of all parameters, for the terminal and for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..typing import PyTree
from ._base import AbstractParameter
from ._shown import brief, html_table
from ._tree import find

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table

WIDTH = 140
NARROW = (0, 1, 4)
"""What a terminal narrower than `WIDTH` shows: names and values whole, rather than all columns cut off."""
COLUMNS = ("name", "value", "shape", "dtype", "trainable", "constraint", "prior")


@dataclass(frozen=True)
class ParameterTable:
    """One row per parameter. `print` it, show it in a notebook, or take `rows`."""

    rows: tuple[tuple[str, ...], ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        from rich.table import Column, Table
        from rich.text import Text

        wide = options.max_width >= WIDTH
        shown = range(len(COLUMNS)) if wide else NARROW
        table = Table(*(Column(COLUMNS[i], overflow="fold", no_wrap=wide and i == 0) for i in shown))
        for row in self.rows:
            table.add_row(*(Text(row[i]) for i in shown))
        yield table

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=WIDTH, no_color=True)
        with console.capture() as capture:
            console.print(self)
        return capture.get()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(COLUMNS, self.rows)


def table(tree: PyTree) -> ParameterTable:
    """The table of all parameters of a model, kernel, likelihood or posterior.

    >>> import dgpax
    >>> listing = dgpax.table(dgpax.kernels.RBF(0.5))  # print it
    >>> [row[0] for row in listing.rows]
    ['lengthscale', 'variance']
    """
    return ParameterTable(tuple(_row(name, node) for name, node in find(tree).items()))


def _row(name: str, node: AbstractParameter) -> tuple[str, ...]:
    value = np.asarray(node.value)
    return (
        name,
        brief(value),
        "x".join(map(str, value.shape)) or "scalar",
        str(value.dtype),
        "yes" if node.trainable else "no",
        node.constraint,
        "" if node.prior is None else repr(node.prior),
    )
