"""From what the user names, a file or a dataset, to rows to train on and rows held out."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import data, report
from ..data import Dataset, Encoding, Table, TableColumn, Written, read_table
from ..data.reading import Wishes, is_table
from ..errors import DgpaxWarning, InputError, UnknownNameError
from ..recipes import Rows
from ..report import ColumnSummary
from ._model import class_numbers, label_texts, named_dataset, numbers_of

TASKS = ("auto", "regression", "classification")
HOLD_OUT = ("random", "last")
TEST_FRACTION = 0.2
FEWEST_ROWS = 5
MOST_CLASSES = 100
FEW_VALUES = 10
"""Different whole numbers up to which a target may be meant as classes."""


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
    written: tuple[Written, ...] = ()

    def rows(self) -> Rows:
        """Those to train on."""
        x, y, encoding = np.asarray(self.train.x), np.asarray(self.train.y), self.encoding
        return Rows(
            x, y, gaps=encoding.gaps, num_classes=len(self.classes), input_names=encoding.output_names,
            circles=tuple(encoding.circles.values()),
        )  # fmt: skip


class Choice(NamedTuple):
    """What the command line says about the data. `test_fraction=None` is a fifth, `hold_out` "random" or "last"."""

    target: str | None = None
    task: str = "auto"
    ignore: Sequence[str] = ()
    test_fraction: float | None = None
    split: int = 0
    seed: int = 0
    wishes: Wishes = Wishes()
    hold_out: str = "random"


class Prepared(NamedTuple):
    """A table whose rows all have a target: the columns to learn from, and the target as numbers."""

    source: str
    table: Table
    target: str
    names: list[str]
    y: np.ndarray
    classes: tuple[str, ...]


def read_source(source: str, choice: Choice) -> Source:
    """A file by its path, else a dataset of the catalogue by its name; some rows are held out."""
    if not names_a_file(source, choice):
        return named_source(source, choice)
    found = prepared(source, choice)
    test = held_out(found.table, choice)
    return split(found, ~test, test)


def names_a_file(source: str, choice: Choice) -> bool:
    """Whether it is one, rather than a dataset of the catalogue; raises if it is neither."""
    if choice.task not in TASKS:
        raise UnknownNameError(f"--task {choice.task} isn't known. There are: {', '.join(TASKS)}.")
    if choice.hold_out not in HOLD_OUT:
        raise UnknownNameError(f"--hold-out {choice.hold_out} isn't known. There are: {', '.join(HOLD_OUT)}.")
    if not 0.0 <= share_of_test(choice) < 1.0:
        raise InputError(f"--test-fraction is a share of the rows, at least 0 and below 1; got {choice.test_fraction}.")
    if is_table(source):
        return True
    if source not in data.names():
        raise UnknownNameError(
            f"{source!r} is neither a file nor a named dataset. Files are CSV or Parquet; datasets are: "
            f"{', '.join(data.names())}."
        )
    return False


def share_of_test(choice: Choice) -> float:
    """Of the rows that are held out."""
    return TEST_FRACTION if choice.test_fraction is None else choice.test_fraction


def read_with_notes(source: str | Path, wishes: Wishes | None = None, like: Sequence[Written] = ()) -> Table:
    """The table in a file; its notes are warnings."""
    table = read_table(source, **(wishes or Wishes())._asdict(), like=like)
    for note in table.notes:
        warnings.warn(note, DgpaxWarning, stacklevel=3)
    return table


def table_of(source: str, split: int = 0, like: Sequence[Written] = ()) -> Table:
    """The table in a file, or the held-out rows of a named dataset."""
    if is_table(source) or source not in data.names():
        return read_with_notes(source, like=like)
    _, test = data.load(source).split(split)
    arrays = dict(zip(test.input_names, np.asarray(test.x).T, strict=True)) | {
        test.output_names[0]: np.asarray(test.y)[:, 0]
    }
    columns = {
        name: TableColumn(name, Written(name, "number"), values, [f"{value:.15g}" for value in values])
        for name, values in arrays.items()
    }
    return Table(columns, range(1, test.num_rows + 1))


def named_source(name: str, choice: Choice) -> Source:
    """A dataset of the catalogue, in one of its splits."""
    named = data.load(name)
    if choice.target not in (None, named.output_name):
        raise InputError(f"The target of {name} is {named.output_name}; got --target {choice.target}.")
    train, test = named.split(choice.split)
    encoding = Encoding.of(dict(zip(train.input_names, np.asarray(train.x).T, strict=True)))
    classes = () if named.task == "regression" else tuple(str(label) for label in range(int(np.max(named.y)) + 1))
    return Source(name, f"split {choice.split}", train, test, encoding, named.output_name, classes, None)


def prepared(source: str, choice: Choice) -> Prepared:
    """The table in a file, with notes about what isn't clear."""
    table = _read_for(source, choice)
    target = target_of(table, choice.target)
    table = _with_target(table, target)
    values = table.values([target])[target]
    classes = _classes(values, target, choice.task)
    if choice.task == "auto" and (note := doubt_about_task(table.columns[target])):
        warnings.warn(note, DgpaxWarning, stacklevel=2)
    y = class_numbers(values, classes) if classes else numbers_of(values, target)
    return Prepared(source, table, target, _inputs(source, table, target, choice.ignore), y, classes)


def split(found: Prepared, train: np.ndarray, test: np.ndarray) -> Source:
    """Some rows to train on and some to test with, as truth values for each; encoded by what the former show."""
    table, target, y = found.table, found.target, found.y
    training = table.rows(train)
    names = _with_values(training, found.names)
    encoding = Encoding.of(training.values(names))
    known, new = (
        named_dataset(encoding.apply(rows.values(names)), y[part], encoding.output_names, target)
        for rows, part in ((training, train), (table.rows(test), test))
    )
    columns = tuple(_describe(table.columns[name]) for name in names)
    written = tuple(table.columns[name].written for name in (*names, target))
    name = Path(found.source).name
    return Source(name, f"target {target}", known, new, encoding, target, found.classes, columns, written)


def _read_for(source: str, choice: Choice) -> Table:
    """The table; a target that is to be labels is taken as text where it isn't all numbers."""
    table = read_with_notes(source, choice.wishes)
    target = target_of(table, choice.target)
    table.require(choice.ignore)
    if choice.task == "classification" and table.columns[target].problem:
        return read_table(source, **choice.wishes._replace(categories=(*choice.wishes.categories, target))._asdict())
    return table


def target_of(table: Table, target: str | None) -> str:
    """The column to predict: the last one that isn't empty, unless another is named."""
    table.require([] if target is None else [target])
    full = [name for name, column in table.columns.items() if column.kind != "empty"]
    if target is None and not full:
        raise InputError("The table has no value at all.")
    chosen = full[-1] if target is None else target
    kind = table.columns[chosen].written.kind
    if kind in ("date", "empty"):
        what = "dates, which can't be predicted" if kind == "date" else "no value at all"
        raise InputError(f"The target {chosen!r} holds {what}. Name another column: --target NAME.")
    return chosen


def doubt_about_task(target: TableColumn) -> str:
    """What to say about numbers that may be meant as classes, "" if these aren't."""
    if target.written.kind != "number" or target.problem:
        return ""
    there = target.values[~np.isnan(target.values)]
    distinct = np.unique(there)
    if not (np.all(there == np.round(there)) and 2 <= len(distinct) <= FEW_VALUES and len(distinct) < len(there)):
        return ""
    shown = ", ".join(f"{value:.15g}" for value in distinct[:5]) + ", …" * (len(distinct) > 5)
    return (
        f"The target {target.name!r} holds whole numbers with {len(distinct)} different values ({shown}) and is taken "
        "as a number to predict: --task regression. If they are classes, say --task classification."
    )


def _inputs(source: str, table: Table, target: str, ignore: Sequence[str]) -> list[str]:
    """The columns to learn from: all that have values."""
    full = [name for name, column in table.columns.items() if column.written.kind != "empty"]
    names = [name for name in full if name != target and name not in ignore]
    if not names:
        raise InputError(f"{source} has no column besides the target {target!r}.")
    for name, values in table.values(names).items():
        numbers = _numbers_the_rows(values)
        if len(names) > 1 and (numbers or (values.dtype.kind == "f" and table.columns[name].kind == "identifier")):
            does = "numbers" if numbers else "seems to name"
            advice = f"If it means nothing, leave it out: --ignore {shlex.quote(name)}"
            warnings.warn(f"The column {name!r} {does} the rows. {advice}", DgpaxWarning, stacklevel=3)
    return names


def _with_values(training: Table, names: list[str]) -> list[str]:
    """Those that have values among the rows to train on."""
    gone = [name for name in names if training.columns[name].missing == training.num_rows]
    if gone:
        listing = ", ".join(map(repr, gone))
        warnings.warn(f"No value among the rows to train on, so left out: {listing}.", DgpaxWarning, stacklevel=3)
    return [name for name in names if name not in gone]


def _numbers_the_rows(values: np.ndarray) -> bool:
    """Whether they are 1, 2, 3, … or the like, in any order."""
    return values.dtype.kind == "f" and len(values) > 2 and bool(np.all(np.diff(np.sort(values)) == 1.0))


def _with_target(table: Table, target: str) -> Table:
    """The rows that have a target."""
    there = np.array([text is not None for text in label_texts(table.values([target])[target])])
    if not there.all():
        gone = int(np.sum(~there))
        warnings.warn(f"{gone} of {len(there)} rows have no {target!r} and are left out.", DgpaxWarning, stacklevel=2)
    return table.rows(there)


def _classes(target: np.ndarray, name: str, task: str) -> tuple[str, ...]:
    """The labels in order; none if the target is a number to predict."""
    if task == "regression" or (task == "auto" and target.dtype.kind == "f"):
        return ()
    texts = [text for text in label_texts(target) if text is not None]
    labels = sorted(set(texts))
    if not 2 <= len(labels) <= MOST_CLASSES:
        raise InputError(f"The target has {len(labels)} different labels; from 2 to {MOST_CLASSES} can be told apart.")
    return tuple(labels)


def held_out(table: Table, choice: Choice) -> np.ndarray:
    """Which rows are held out: some at random, or the last ones by the first column of dates, else as they stand."""
    num_rows, share = table.num_rows, share_of_test(choice)
    count = round(share * num_rows)
    if num_rows < FEWEST_ROWS or not 0 < count < num_rows:
        raise InputError(
            f"--test-fraction {share} of {num_rows} rows leaves nothing to train on or to test with; "
            f"at least {FEWEST_ROWS} rows are needed."
        )
    if choice.hold_out == "last":
        times = times_of(table)
        order = np.arange(num_rows) if times is None else np.argsort(times, kind="stable")
        return np.isin(np.arange(num_rows), order[-count:])
    order = np.random.default_rng(choice.seed).permutation(num_rows)
    return np.isin(np.arange(num_rows), order[:count])


def times_of(table: Table) -> np.ndarray | None:
    """When the rows are, by the first column of dates that is full; None if there is none."""
    for column in table.columns.values():
        if column.written.kind == "date" and not column.missing and not column.problem:
            return column.values.astype("datetime64[us]").astype(float)
    return None


def _describe(column: TableColumn) -> ColumnSummary:
    name, values = column.name, column.values
    if column.written.kind == "category":
        return report.describe_categories(name, [None if value is None else str(value) for value in values])
    if column.written.kind != "date":
        return report.describe_numbers(name, values, column.written.kind)
    days = np.array([value for value in values if value is not None], "datetime64[us]")
    content = f"{np.min(days).astype('M8[D]')} … {np.max(days).astype('M8[D]')}"
    return ColumnSummary(name, "date", content, column.missing, days.astype(float))
