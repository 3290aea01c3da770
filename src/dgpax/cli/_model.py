"""A model for tables: how columns become numbers, the fit, and what the labels are called, in one file."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from ..data import Dataset, Encoding, NumberColumn
from ..errors import DgpaxWarning, InputError, ModelFileError
from ..estimators import DeepGPClassifier, DeepGPRegressor
from ..inference import Fit
from ..io import REGISTRY, load_model
from ..storage import read, write
from ._tables import Table

KIND = "dgpax model of a table"


@dataclass(frozen=True)
class TableModel:
    """A fit on a table: `fit` is what `dgpax.fit` returned, `encoding` how inputs become numbers; `classes` are the
    labels 0, 1, … of a classification; `details` say where it comes from."""

    fit: Fit
    encoding: Encoding
    target: str
    classes: tuple[str, ...]
    details: tuple[tuple[str, str], ...]

    def inputs(self, table: Table) -> np.ndarray:
        """The inputs of a table as numbers; other columns are left alone."""
        return encode(self.encoding, table)

    def dataset(self, table: Table) -> Dataset:
        """A table with the target, as the model takes it."""
        return labelled(self.inputs(table), table.select([self.target]).columns[self.target], self)


def save_table_model(model: TableModel, path: Path) -> None:
    """Write it to one file, in full or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, KIND, model, REGISTRY.with_own((TableModel,)))


def load_table_model(path: str | Path) -> TableModel:
    """Read what `dgpax fit` wrote, or what `dgpax.save` did: nothing in the file is run."""
    try:
        model = read(path, KIND, REGISTRY.with_own((TableModel,)))
    except ModelFileError as error:
        try:
            loaded = load_model(path)
        except ModelFileError:
            raise error from None
        return (
            _of_estimator(loaded) if isinstance(loaded, DeepGPRegressor | DeepGPClassifier) else _of_fit(path, loaded)
        )
    if not isinstance(model, TableModel):
        raise ModelFileError(f"{path} holds a {type(model).__name__}, not a model of a table.")
    return model


def learn_encoding(table: Table) -> Encoding:
    """As `Encoding.of`, column by column, so that messages name the column."""
    learnt = []
    for name, values in table.columns.items():
        with _naming(name):
            own = Encoding.of(values[:, None])
        learnt += [dataclasses.replace(column, name=name) for column in own.columns]
    return Encoding(tuple(learnt), tuple(table.columns))


def encode(encoding: Encoding, table: Table) -> np.ndarray:
    """The table's inputs as numbers [N, E], found by their names."""
    parts = []
    chosen = table.select(encoding.input_names).columns
    for column, (name, values) in zip(encoding.columns, chosen.items(), strict=True):
        with _naming(name):
            parts.append(Encoding((column,), ()).apply(values[:, None]))
    return np.concatenate(parts, axis=1)


def labelled(x: np.ndarray, target: np.ndarray, model: TableModel) -> Dataset:
    """Inputs with their targets: numbers, or the numbers of the classes."""
    y = class_numbers(target, model.classes) if model.classes else numbers_of(target, model.target)
    return named_dataset(x, y, model.encoding.output_names, model.target)


def named_dataset(x: np.ndarray, y: np.ndarray, input_names: Sequence[str], target: str) -> Dataset:
    """A checked table as a dataset."""
    outputs = jnp.asarray(y, x.dtype)[:, None]
    return Dataset(jnp.asarray(x), outputs, input_names=tuple(input_names), output_names=(target,))


def numbers_of(target: np.ndarray, name: str) -> np.ndarray:
    """A numeric target, or an error that says what it is."""
    if target.dtype.kind != "f":
        raise InputError(f"The target {name!r} isn't a number everywhere; for labels use --task classification.")
    return target


def class_numbers(target: np.ndarray, classes: Sequence[str]) -> np.ndarray:
    """The number of every label, NaN where it is missing; a label that isn't among the classes is an error."""
    texts = label_texts(target)
    unknown = sorted({text for text in texts if text is not None} - set(classes))
    if unknown:
        raise InputError(f"The target has labels that the training data had not: {', '.join(map(repr, unknown[:5]))}.")
    places = {name: float(index) for index, name in enumerate(classes)}
    return np.array([np.nan if text is None else places[text] for text in texts])


def label_texts(target: np.ndarray) -> list[str | None]:
    """Labels as text, None where they are missing."""
    if target.dtype.kind == "f":
        return [None if np.isnan(value) else f"{value:g}" for value in target]
    return [None if value is None else str(value) for value in target]


def _of_estimator(estimator: DeepGPRegressor | DeepGPClassifier) -> TableModel:
    encoding = estimator.encoding_
    names = encoding.input_names or tuple(column.name for column in encoding.columns)
    labels = np.asarray(estimator.classes_) if isinstance(estimator, DeepGPClassifier) else np.zeros(0)
    classes = tuple(f"{label:g}" if labels.dtype.kind in "iuf" else str(label) for label in labels)
    return TableModel(estimator.fit_, dataclasses.replace(encoding, input_names=names), "y", classes, ())


def _of_fit(path: str | Path, fitted: object) -> TableModel:
    if not isinstance(fitted, Fit):
        raise ModelFileError(f"{path} holds a {type(fitted).__name__}, which predicts no column of a table.")
    names = fitted.input_names or tuple(f"x{i}" for i in range(fitted.num_inputs))
    columns = tuple(NumberColumn(name, 0.0, has_gaps=False, is_date=False) for name in names)
    return TableModel(fitted, Encoding(columns, names), "y", (), ())


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Errors and warnings about the only column of a table are about the column of this name."""

    def about(message: object) -> str:
        return str(message).replace("Column 0", f"The column {name[:60]!r}", 1)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except InputError as error:
            raise InputError(about(error)) from error
    for warning in caught:
        warnings.warn(about(warning.message), DgpaxWarning, stacklevel=4)
