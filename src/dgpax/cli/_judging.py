"""Rows that are judged by fits that hadn't seen them, and what is trained in the end."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..data import Table
from ..errors import DgpaxWarning, InputError
from ..fits import AbstractFit
from ..report import Judgement, judgement, pooled
from ._source import Choice, Prepared, Source, held_out, named_source, names_a_file, prepared, split, times_of

FOLDS = 5
FOLDS_BELOW = 200
"""Rows below which all of them are judged, fold by fold, as a fifth of them would say little."""


class Work(NamedTuple):
    """Splits that are judged, each with the places of its test rows; and the rows that the saved model is trained on,
    None for those of the only split."""

    splits: tuple[Source, ...]
    places: tuple[np.ndarray, ...]
    whole: Source | None
    how: str
    found: Prepared | None = None

    @property
    def saved(self) -> Source:
        """What the saved model is trained on."""
        return self.whole or self.splits[0]

    @property
    def num_fits(self) -> int:
        """How many fits that takes."""
        return len(self.splits) + (self.whole is not None)

    @property
    def in_short(self) -> str:
        """What will happen, in a line."""
        source = self.splits[0]
        if self.whole is None:
            counts = f"{source.train.num_rows} rows to train, {source.test.num_rows} held out"
        else:
            counts = f"{self.whole.train.num_rows} rows to train, judged by {self.how}"
        return f"{source.name}, {source.note}: {counts}"


def plan(source: str, choice: Choice, keep: bool) -> Work:
    """Fold by fold below 200 rows, or where nothing is to be held out; else rows held out. With `keep`, and for named
    datasets, whose splits are standard, the model that is judged is the one that is saved."""
    if not names_a_file(source, choice):
        found = named_source(source, choice)
        return Work((found,), (np.arange(found.test.num_rows),), None, "the rows held out")
    found = prepared(source, choice)
    num_rows = found.table.num_rows
    if choice.test_fraction == 0.0 and (keep or choice.hold_out == "last"):
        raise InputError(
            "--test-fraction 0 holds nothing out, so there is nothing that --keep-held-out or --hold-out last could "
            "mean. Leave one of them out."
        )
    few = choice.test_fraction is None and num_rows < FOLDS_BELOW and choice.hold_out == "random" and not keep
    everything = np.ones(num_rows, bool)
    if few or choice.test_fraction == 0.0:
        masks, how = _folds(num_rows, choice.seed), f"cross-validation in {FOLDS} folds"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DgpaxWarning)  # what a fold lacks, the saved model has
            splits = tuple(split(found, ~mask, mask) for mask in masks)
    else:
        masks = (held_out(found.table, choice),)
        splits = (split(found, ~masks[0], masks[0]),)
        count = int(np.sum(masks[0]))
        how = f"the last {count} rows" if choice.hold_out == "last" else f"{count} rows held out at random"
    whole = None if keep else split(found, everything, everything)
    return Work(splits, tuple(map(np.flatnonzero, masks)), whole, how, found)


def judge(work: Work, train: Callable[[Source, str], AbstractFit], seed: int) -> tuple[AbstractFit, Judgement]:
    """The fit that is to be saved, and what fits that hadn't seen them say about the held-out rows. `train` is told
    which fit it is, in words."""
    judged, fitted = [], None
    for number, source in enumerate(work.splits, 1):
        fitted = train(source, f"Fit {number} of {work.num_fits}, without the rows that it is judged on")
        judged.append(judgement(fitted, source.test, seed=seed))
    if work.whole is None:
        assert fitted is not None  # noqa: S101 - there is one split at least
        return fitted, _named(judged[0], work)
    every = np.concatenate(work.places)
    order = np.argsort(every, kind="stable")
    rows = work.whole.train
    chosen = jnp.asarray(every[order])
    together = pooled(judged, order, dataclasses.replace(rows, x=rows.x[chosen], y=rows.y[chosen]))
    how = f"Judged by {work.how}, with fits that hadn't seen them; the model was then trained on all rows."
    last = train(work.whole, f"Fit {work.num_fits} of {work.num_fits}, on all rows")
    return last, _named(together._replace(how=how), work)


def _named(judged: Judgement, work: Work) -> Judgement:
    """With the lines of the file, the column that names the rows, and their times."""
    if work.found is None:
        return judged
    table, places = work.found.table, np.sort(np.concatenate(work.places))
    lines = tuple(table.lines[i] for i in places)
    named = _identifier(table)
    names = (named, tuple(table.columns[named].cells[i] for i in places)) if named else None
    times = times_of(table)
    return judged._replace(lines=lines, names=names, times=None if times is None else times[places])


def _identifier(table: Table) -> str | None:
    """The first column that names the rows."""
    return next((name for name, column in table.columns.items() if column.kind == "identifier"), None)


def _folds(num_rows: int, seed: int) -> tuple[np.ndarray, ...]:
    if num_rows < FOLDS:
        raise InputError(f"A fit needs at least {FOLDS} rows with a target; there are {num_rows}.")
    number = np.random.default_rng(seed).permutation(num_rows) % FOLDS
    return tuple(number == each for each in range(FOLDS))
