"""From a table as people have it, with text and gaps, to numbers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from ..errors import DgpaxWarning, InputError
from ._cycles import cycles_of, on_circle
from ._frames import column_names, is_frame, select_columns
from ._table import Column, is_mapping, typed_columns

MOST_CATEGORIES = 50
FEW_ROWS = 10
MISSING = "missing"


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers, or of dates as days since 1970 (UTC). Gaps are filled with the median of the training
    data, and marked in a column of their own if the training data had some. `cycles` of dates are places on circles."""

    name: str
    median: float
    has_gaps: bool
    is_date: bool
    cycles: tuple[str, ...] = ()

    @property
    def output_names(self) -> tuple[str, ...]:
        own = (self.name, f"{self.name} {MISSING}") if self.has_gaps else (self.name,)
        return own + tuple(f"{self.name} {cycle} ({part})" for cycle in self.cycles for part in ("cos", "sin"))

    @property
    def gap(self) -> int | None:
        """Which of them marks gaps."""
        return 1 if self.has_gaps else None

    def apply(self, column: Column) -> np.ndarray:
        gaps = np.isnan(column.values) if column.is_number else np.zeros(len(column.values), bool)
        if not gaps.all() and (not column.is_number or column.is_date != self.is_date):
            wanted = "dates" if self.is_date else "numbers"
            raise InputError(f"{column.label} had {wanted} in the training data and has others now. Pass {wanted}.")
        if gaps.any() and not self.has_gaps:
            warnings.warn(
                f"{column.label} has {gaps.sum()} missing values and had none in the training data; they are taken to "
                f"be its median, {self.median:g}.",
                DgpaxWarning,
                stacklevel=5,
            )
        filled = np.where(gaps, np.asarray(self.median, column.values.dtype), column.values)
        own = np.stack([filled, gaps.astype(filled.dtype)] if self.has_gaps else [filled], axis=1)
        return np.concatenate([own, *(on_circle(filled, cycle) for cycle in self.cycles)], axis=1)


@dataclass(frozen=True)
class CategoryColumn:
    """A column of text, categories or truth values, one-hot. Gaps are a category, "missing"."""

    name: str
    categories: tuple[str, ...]

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={category}" for category in self.categories)

    @property
    def cycles(self) -> tuple[str, ...]:
        """None: categories don't come round."""
        return ()

    @property
    def gap(self) -> int | None:
        """Which of them marks gaps."""
        return self.categories.index(MISSING) if MISSING in self.categories else None

    def apply(self, column: Column) -> np.ndarray:
        entries = _categories(column)
        unknown = sorted(set(entries) - set(self.categories))
        if unknown:
            warnings.warn(
                f"{column.label} has categories that the training data had not: {_some(unknown)}. They are taken to be "
                f"none of the known ones, {_some(self.categories)}.",
                DgpaxWarning,
                stacklevel=5,
            )
        return np.array([[entry == category for category in self.categories] for entry in entries], float)


@dataclass(frozen=True)
class Encoding:
    """How the inputs of a table become numbers, learnt from the training data.

    Numbers stay. Text, categories and truth values become one column per category, in alphabetical order; a category
    that the training data had not is none of them, with a warning. Missing numbers become the training data's median,
    with a column that says so where the training data had gaps; missing categories are a category of their own. Dates
    become days since 1970 (UTC), durations days. Dates of a time series, which has values in most hours, days or
    months, also become places on circles: the time of day, the weekday, the season. An array of truth values counts as
    numbers.

    >>> import numpy as np
    >>> from dgpax.data import Encoding
    >>> table = {"size": np.array([50.0, np.nan, 80.0]), "place": np.array(["sea", "town", "sea"], dtype=object)}
    >>> encoding = Encoding.of(table)
    >>> encoding.output_names
    ('size', 'size missing', 'place=sea', 'place=town')
    >>> encoding.apply(table)[1]
    array([65.,  1.,  0.,  1.])
    """

    columns: tuple[NumberColumn | CategoryColumn, ...]
    input_names: tuple[str, ...]

    @classmethod
    def of(cls, table: Any) -> Encoding:
        """Learn it from a table [N, D]: an array, lists, a data frame of pandas or polars, or arrays [N] by name."""
        columns, names = typed_columns(table)
        shown = names or tuple(f"x{i}" for i in range(len(columns)))
        return cls(tuple(_learn(name, column) for name, column in zip(shown, columns, strict=True)), names)

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the encoded columns: `age`, `age missing`, `colour=red`; x0, x1, … where there were none."""
        return tuple(name for column in self.columns for name in column.output_names)

    @property
    def places(self) -> tuple[range, ...]:
        """Which of the encoded columns every column of the table becomes."""
        widths = [len(column.output_names) for column in self.columns]
        return tuple(range(end - width, end) for end, width in zip(accumulate(widths), widths, strict=True))

    @property
    def gaps(self) -> tuple[int, ...]:
        """Which of the encoded columns say that something is missing: `age missing`, `colour=missing`."""
        both = zip(self.places, self.columns, strict=True)
        return tuple(places[column.gap] for places, column in both if column.gap is not None)

    @property
    def circles(self) -> dict[str, tuple[int, int]]:
        """Which two of the encoded columns are the place on a circle: `day season`."""
        found = {}
        for places, column in zip(self.places, self.columns, strict=True):
            for number, cycle in enumerate(reversed(column.cycles)):
                end = places[-1] - 2 * number
                found[f"{column.name} {cycle}"] = (end - 1, end)
        return found

    @property
    def is_trivial(self) -> bool:
        """Whether every column stays as it is."""
        return all(isinstance(c, NumberColumn) and not c.has_gaps and not c.is_date for c in self.columns)

    def apply(self, table: Any) -> np.ndarray:
        """The table as floats [N, E], float32 if all its columns are. Columns that have names are found by them."""
        if is_mapping(table):
            table = self._named(table)
        elif is_frame(table) and self.input_names and column_names(table, "x"):
            table = select_columns(table, self.input_names, "x")
        columns, _ = typed_columns(table)
        if len(columns) != len(self.columns):
            raise InputError(
                f"X has {len(columns)} features, but the model is expecting {len(self.columns)} features as input. "
                "Pass the columns that it was trained on."
            )
        for column in columns:
            refuse_infinite(column)
        parts = [how.apply(column) for how, column in zip(self.columns, columns, strict=True)]
        all_float32 = all(column.values.dtype == np.float32 for column in columns)
        return np.concatenate(parts, axis=1, dtype=np.float32 if all_float32 else np.float64)

    def _named(self, table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        missing = [name for name in self.input_names if name not in table]
        if missing:
            raise InputError(f"The table has no column {_some(missing)}. It has: {_some(list(table), most=20)}.")
        return {name: table[name] for name in self.input_names}


def _learn(name: str, column: Column) -> NumberColumn | CategoryColumn:
    refuse_infinite(column)
    if column.is_number:
        gaps = np.isnan(column.values)
        if gaps.all():
            raise InputError(f"{column.label} has no value at all. Leave it out.")
        median = float(np.median(column.values[~gaps].astype(float)))
        cycles = cycles_of(column.values[~gaps]) if column.is_date else ()
        return NumberColumn(name, median, bool(gaps.any()), column.is_date, cycles)
    entries = _categories(column)
    return category_column(name, column.label, set(entries), len(entries))


def category_column(name: str, label: str, entries: Set[str], num_rows: int) -> CategoryColumn:
    """A column of so many rows that has these entries."""
    categories = tuple(sorted(entries))
    if len(categories) > MOST_CATEGORIES or num_rows == len(categories) > FEW_ROWS:
        raise InputError(
            f"{label} is text with {len(categories)} different values in {num_rows} rows "
            f"({_some(categories)}); up to {MOST_CATEGORIES} that repeat can be used as categories. Leave it out if it "
            "is a name or a number of the row, turn it into numbers if it means some, or merge rare values."
        )
    return CategoryColumn(name, categories)


def _categories(column: Column) -> list[str]:
    if column.is_number:
        return [MISSING if np.isnan(entry) else f"{entry:.15g}" for entry in column.values]
    return [MISSING if entry is None else entry for entry in column.values]


def refuse_infinite(column: Column) -> None:
    if column.is_number and np.isinf(column.values).any():
        count = int(np.isinf(column.values).sum())
        raise InputError(
            f"{column.label} has inf in {count} of {len(column.values)} rows. Replace them by finite numbers."
        )


def _some(values: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(repr(value[:40]) for value in values[:most])
    return f"{shown}, … ({len(values)} in all)" if len(values) > most else shown
