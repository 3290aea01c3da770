"""From what the user names, a file or a dataset, to rows to train on and rows held out."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import data, report
from ..data import Dataset, Encoding
from ..errors import DgpaxWarning, InputError, UnknownNameError
from ..recipes import Rows
from ..report import ColumnSummary
from ._model import class_numbers, label_texts, named_dataset, numbers_of
from ._tables import Table, is_table, read_table

TASKS = ("auto", "regression", "classification")
FEWEST_ROWS = 5
MOST_CLASSES = 100


class Source(NamedTuple):
    """A table, split and encoded."""

    name: str
    note: str
    """Which rows are held out, in words."""
    train: Dataset
    test: Dataset
    encoding: Encoding
    target: str
    classes: tuple[str, ...]
    columns: tuple[ColumnSummary, ...] | None

    def rows(self) -> Rows:
        """Those to train on."""
        x, y = np.asarray(self.train.x), np.asarray(self.train.y)
        return Rows(
            x, y, gaps=self.encoding.gaps, num_classes=len(self.classes), input_names=self.encoding.output_names
        )


class Choice(NamedTuple):
    """What the command line says about the data."""

    target: str | None = None
    task: str = "auto"
    ignore: Sequence[str] = ()
    test_fraction: float = 0.2
    split: int = 0
    seed: int = 0


def read_source(source: str, choice: Choice) -> Source:
    """A file by its path, else a dataset of the catalogue by its name."""
    if choice.task not in TASKS:
        raise UnknownNameError(f"--task {choice.task} isn't known. There are: {', '.join(TASKS)}.")
    if is_table(source):
        return _of_table(source, read_table(source), choice)
    if source not in data.names():
        raise UnknownNameError(
            f"{source!r} is neither a file nor a named dataset. Files are CSV or Parquet; datasets are: "
            f"{', '.join(data.names())}."
        )
    return _of_catalogue(source, choice)


def table_of(source: str, split: int = 0) -> Table:
    """The table in a file, or the held-out rows of a named dataset."""
    if is_table(source) or source not in data.names():
        return read_table(source)
    _, test = data.load(source).split(split)
    columns = dict(zip(test.input_names, np.asarray(test.x).T, strict=True))
    return Table({**columns, test.output_names[0]: np.asarray(test.y)[:, 0]})


def _of_catalogue(name: str, choice: Choice) -> Source:
    named = data.load(name)
    if choice.target not in (None, named.output_name):
        raise InputError(f"The target of {name} is {named.output_name}; got --target {choice.target}.")
    train, test = named.split(choice.split)
    encoding = Encoding.of(dict(zip(train.input_names, np.asarray(train.x).T, strict=True)))
    classes = () if named.task == "regression" else tuple(str(label) for label in range(int(np.max(named.y)) + 1))
    return Source(name, f"split {choice.split}", train, test, encoding, named.output_name, classes, None)


def _of_table(source: str, table: Table, choice: Choice) -> Source:
    target = choice.target or list(table.columns)[-1]
    table.select([target, *choice.ignore])
    table = _with_target(table, target)
    inputs = table.select([name for name in table.columns if name != target and name not in choice.ignore])
    if not inputs.columns:
        raise InputError(f"{source} has no column besides the target {target!r}.")
    for name, values in inputs.columns.items():
        if len(inputs.columns) > 1 and _numbers_the_rows(values):
            advice = f"If it means nothing, leave it out: --ignore {shlex.quote(name)}"
            warnings.warn(f"The column {name!r} numbers the rows. {advice}", DgpaxWarning, stacklevel=2)
    wanted = table.columns[target]
    classes = _classes(wanted, target, choice.task)
    y = class_numbers(wanted, classes) if classes else numbers_of(wanted, target)
    held_out = _held_out(table.num_rows, choice)
    encoding = Encoding.of(inputs.rows(~held_out).columns)
    train, test = (
        named_dataset(encoding.apply(inputs.rows(part).columns), y[part], encoding.output_names, target)
        for part in (~held_out, held_out)
    )
    columns = tuple(_describe(name, values) for name, values in inputs.columns.items())
    return Source(Path(source).name, f"target {target}", train, test, encoding, target, classes, columns)


def _numbers_the_rows(values: np.ndarray) -> bool:
    """Whether they are 1, 2, 3, … or the like, in any order."""
    return values.dtype.kind == "f" and len(values) > 2 and bool(np.all(np.diff(np.sort(values)) == 1.0))


def _with_target(table: Table, target: str) -> Table:
    """The rows that have a target."""
    there = np.array([text is not None for text in label_texts(table.columns[target])])
    if not there.all():
        gone = int(np.sum(~there))
        warnings.warn(f"{gone} of {len(there)} rows have no {target!r} and are left out.", DgpaxWarning, stacklevel=2)
    return table.rows(there)


def _classes(target: np.ndarray, name: str, task: str) -> tuple[str, ...]:
    """The labels in order; none if the target is a number to predict."""
    if task == "regression" or (task == "auto" and target.dtype.kind == "f"):
        return ()
    texts = [text for text in label_texts(target) if text is not None]
    words = sorted({text for text in texts if not _is_number(text)})
    num_numbers = sum(_is_number(text) for text in texts)
    if task == "auto" and words and 2 * num_numbers > len(texts):
        shown = ", ".join(repr(word[:40]) for word in words[:5])
        raise InputError(
            f"The target {name!r} is a number in {num_numbers} of {len(texts)} rows, and {shown} in others. Mend these "
            "or leave them empty; if they are labels all the same, say --task classification."
        )
    labels = sorted(set(texts))
    if not 2 <= len(labels) <= MOST_CLASSES:
        raise InputError(f"The target has {len(labels)} different labels; from 2 to {MOST_CLASSES} can be told apart.")
    return tuple(labels)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _held_out(num_rows: int, choice: Choice) -> np.ndarray:
    """Which rows are held out: some at random."""
    count = round(choice.test_fraction * num_rows)
    if num_rows < FEWEST_ROWS or not 0 < count < num_rows:
        raise InputError(
            f"--test-fraction {choice.test_fraction} of {num_rows} rows leaves nothing to train on or to test with; "
            f"at least {FEWEST_ROWS} rows are needed."
        )
    order = np.random.default_rng(choice.seed).permutation(num_rows)
    return np.isin(np.arange(num_rows), order[:count])


def _describe(name: str, values: np.ndarray) -> ColumnSummary:
    if values.dtype.kind == "f":
        return report.describe_numbers(name, values)
    texts = [None if value is None else str(value) for value in values]
    return report.describe_categories(name, texts)
