"""A fit on a table, with what it takes to use it on another one."""

from __future__ import annotations

from dataclasses import dataclass

from ..data import Encoding, Written
from ..fits import AbstractFit


@dataclass(frozen=True)
class TableModel:
    """What `dgpax fit` saves: `fit` is what `dgpax.fit` returned, `encoding` how inputs become numbers; `classes` are
    the labels 0, 1, … of a classification; `details` say where it comes from; `written` is how the cells of the
    training table were written, for `data.read_table(..., like=written)`."""

    fit: AbstractFit
    encoding: Encoding
    target: str
    classes: tuple[str, ...]
    details: tuple[tuple[str, str], ...]
    written: tuple[Written, ...] = ()
