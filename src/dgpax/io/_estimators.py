"""Estimators as values that a file can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ModelFileError
from ..estimators import AbstractEstimator, DeepGPClassifier, DeepGPRegressor, DeepGPTransformer
from ..fits import AbstractFit

ESTIMATORS = {kind.__name__: kind for kind in (DeepGPRegressor, DeepGPClassifier, DeepGPTransformer)}
LEARNT = (
    "fit_",
    "encoding_",
    "n_features_in_",
    "feature_names_in_",
    "n_outputs_",
    "classes_",
    "num_rows_seen_",
    "embedding_",
    "_is_single",
    "_n_features_out",
    "_sklearn_output_config",
)
"""Everything that fitting may leave on an estimator."""


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
    if not isinstance(saved.learnt.get("fit_"), AbstractFit):
        raise ModelFileError(f"The file holds a {saved.kind} without a fitted model.")
    estimator = kind(**saved.settings)
    vars(estimator).update({name: _restored(value) for name, value in saved.learnt.items()})
    return estimator


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        return Texts(tuple(value.tolist()), value.dtype.kind == "O")
    return value


def _restored(value: Any) -> Any:
    return np.array(value.items, dtype=object if value.is_object else None) if isinstance(value, Texts) else value
