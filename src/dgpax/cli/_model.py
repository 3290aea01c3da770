"""Models of tables: what `dgpax fit` saves, or a saved fit or estimator."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from ..data import Dataset, Encoding, NumberColumn, Table
from ..errors import InputError, ModelFileError
from ..estimators import DeepGPClassifier, DeepGPRegressor
from ..fits import AbstractFit
from ..io import TableModel, load_model


def load_table_model(path: str | Path) -> TableModel:
    """Read what `dgpax fit` wrote, or what `dgpax.save` did: nothing in the file is run."""
    loaded = load_model(path)
    if isinstance(loaded, DeepGPRegressor | DeepGPClassifier):
        return _of_estimator(loaded)
    if isinstance(loaded, AbstractFit):
        return _of_fit(loaded)
    if not isinstance(loaded, TableModel):
        raise ModelFileError(f"{path} holds a {type(loaded).__name__}, which predicts no column of a table.")
    return loaded


def with_target(model: TableModel, table: Table) -> Dataset:
    """A table with the target, as the model takes it."""
    target = table.values([model.target])[model.target]
    return labelled(inputs_of(model, table), target, model)


def inputs_of(model: TableModel, table: Table) -> np.ndarray:
    """The inputs of a table as numbers, as the model takes them."""
    return model.encoding.apply(table.values(model.encoding.input_names))


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
        return [None if np.isnan(value) else f"{value:.15g}" for value in target]
    return [None if value is None else str(value) for value in target]


def _of_estimator(estimator: DeepGPRegressor | DeepGPClassifier) -> TableModel:
    encoding = estimator.encoding_
    names = encoding.input_names or tuple(column.name for column in encoding.columns)
    labels = np.asarray(estimator.classes_) if isinstance(estimator, DeepGPClassifier) else np.zeros(0)
    classes = tuple(f"{label:.15g}" if labels.dtype.kind in "iuf" else str(label) for label in labels)
    return TableModel(estimator.fit_, dataclasses.replace(encoding, input_names=names), "y", classes, ())


def _of_fit(fitted: AbstractFit) -> TableModel:
    names = fitted.input_names or tuple(f"x{i}" for i in range(fitted.num_inputs))
    columns = tuple(NumberColumn(name, 0.0, has_gaps=False, is_date=False) for name in names)
    return TableModel(fitted, Encoding(columns, names), "y", (), ())
