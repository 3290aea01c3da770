"""Estimators as values that a file can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ..data import Encoding
from ..errors import ModelFileError
from ..estimators import AbstractEstimator, DeepGPClassifier, DeepGPRegressor, DeepGPTransformer
from ..fits import AbstractFit
from ..likelihoods import AbstractClassification
from ..storage import conforms
from ._ranges import refuse_other_columns, refuse_ranges
from ._use import traced

ESTIMATORS = {kind.__name__: kind for kind in (DeepGPRegressor, DeepGPClassifier, DeepGPTransformer)}
LEARNT: dict[str, Any] = {
    "fit_": AbstractFit,
    "encoding_": Encoding,
    "n_features_in_": int,
    "feature_names_in_": np.ndarray,
    "n_outputs_": int,
    "classes_": np.ndarray,
    "num_rows_seen_": float,
    "embedding_": np.ndarray,
    "_is_single": bool,
    "_n_features_out": int,
    "_sklearn_output_config": dict,
}
"""Everything that fitting may leave on an estimator, and its type."""
NEEDED = {
    DeepGPRegressor: {"n_outputs_", "_is_single"},
    DeepGPClassifier: {"classes_"},
    DeepGPTransformer: {"_n_features_out"},
}
"""Besides the fit, its encoding and the number of features."""


@dataclass(frozen=True)
class Texts:
    """An array of text, or of Python objects that are text and numbers."""

    items: tuple[Any, ...]
    is_object: bool


@dataclass(frozen=True)
class SavedEstimator:
    """A fitted estimator: its class by name, its arguments, and what it learnt."""

    kind: str
    settings: dict[str, Any]
    learnt: dict[str, Any]


def as_saved(estimator: AbstractEstimator) -> SavedEstimator:
    """What `as_estimator` needs. Only a fitted estimator of dgpax itself can be saved."""
    kind = type(estimator).__name__
    if ESTIMATORS.get(kind) is not type(estimator):
        raise ModelFileError(f"{kind} isn't one of {', '.join(ESTIMATORS)}.")
    learnt = {name: value for name, value in vars(estimator).items() if name in LEARNT}
    if "fit_" not in learnt:
        raise ModelFileError(f"This {kind} isn't fitted yet, and only a fitted one can be saved. Call fit first.")
    return SavedEstimator(kind, estimator.get_params(deep=False), {n: _plain(v) for n, v in learnt.items()})


def as_estimator(saved: SavedEstimator) -> AbstractEstimator:
    """The estimator that was saved."""
    kind = ESTIMATORS.get(saved.kind) if isinstance(saved.kind, str) else None
    if kind is None or not isinstance(saved.settings, dict) or not isinstance(saved.learnt, dict):
        raise ModelFileError(f"The file holds no estimator that is known: {str(saved.kind)[:100]!r}.")
    if set(saved.settings) != set(kind().get_params(deep=False)) or not set(saved.learnt) <= set(LEARNT):
        raise ModelFileError(f"The file holds a {saved.kind} with other arguments, of another version of dgpax.")
    learnt = {name: _restored(value) for name, value in saved.learnt.items()}
    if not isinstance(learnt.get("fit_"), AbstractFit):
        raise ModelFileError(f"The file holds a {saved.kind} without a fitted model.")
    _refuse_other_types(kind, learnt)
    _refuse_other_sizes(kind, learnt)
    estimator = kind(**saved.settings)
    vars(estimator).update(learnt)
    return estimator


def _refuse_other_types(kind: type, learnt: dict[str, Any]) -> None:
    missing = {"encoding_", "n_features_in_", *NEEDED[kind]} - set(learnt)
    if missing:
        _refuse(f"it has no {', '.join(sorted(missing))}")
    for name, value in learnt.items():
        if not conforms(value, LEARNT[name]):
            _refuse(f"its {name} is a {type(value).__name__}")


def _refuse_other_sizes(kind: type, learnt: dict[str, Any]) -> None:
    """What was learnt must be of one size with the fit."""
    fitted, encoding = learnt["fit_"], learnt["encoding_"]
    refuse_ranges(fitted)
    names = learnt.get("feature_names_in_")
    if learnt["n_features_in_"] != len(encoding.columns) or (names is not None and names.shape != (len(names),)):
        _refuse(f"it has {learnt['n_features_in_']} features and an encoding of {len(encoding.columns)}")
    if names is not None and len(names) != len(encoding.columns):
        _refuse(f"it has {len(names)} names for {len(encoding.columns)} features")
    if kind is not DeepGPTransformer:
        refuse_other_columns(encoding, fitted)
    moments = traced(fitted)
    if kind is DeepGPRegressor and moments is not None:
        outputs = moments.mean.shape[-1]
        if learnt["n_outputs_"] != outputs or (learnt["_is_single"] and outputs > 1):
            _refuse(f"it has {learnt['n_outputs_']} outputs and its fit {outputs}")
    if kind is DeepGPClassifier:
        classes, likelihood = learnt["classes_"], fitted.model.likelihood
        known = getattr(likelihood, "num_classes", 0) if isinstance(likelihood, AbstractClassification) else 0
        if classes.ndim != 1 or not 1 <= len(classes) <= known:
            _refuse(f"it has classes of shape {classes.shape} and its fit {known}")


def _refuse(why: str) -> NoReturn:
    raise ModelFileError(f"The file holds an estimator that can't be: {why}. It was changed.")


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        return Texts(tuple(value.tolist()), value.dtype.kind == "O")
    return value


def _restored(value: Any) -> Any:
    if not isinstance(value, Texts):
        return value
    if not conforms(value.items, tuple[str | int | float | bool | None, ...]):
        _refuse("a text in it is none")
    return np.array(value.items, dtype=object if value.is_object else str)
