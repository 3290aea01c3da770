"""What all estimators share: tables in, settings checked, a fit described."""

from __future__ import annotations

import abc
import dataclasses
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..data import Encoding, is_frame, is_sparse, read_weights, refuse_units
from ..fits import AbstractFit, FitReport
from ..parameters import table
from ..recipes import Recipe, Rows, train, train_more

WORDS = {field.name for field in dataclasses.fields(Recipe)}


class AbstractEstimator(BaseEstimator):
    """A scikit-learn estimator around a fit. Arguments are stored as they come and checked in `fit`.

    After `fit`: `fit_` (what `dgpax.fit` returns), `encoding_` (how a table becomes numbers), `n_features_in_`, and
    `feature_names_in_` where the table had names.
    """

    random_state: Any
    verbose: bool | int
    fit_: AbstractFit
    encoding_: Encoding
    feature_names_in_: Any

    @property
    def fit_report_(self) -> FitReport:
        """What happened during the fit."""
        check_is_fitted(self)
        return self.fit_.report

    def summary(self) -> str:
        """The settings, the fit and the parameters as text."""
        check_is_fitted(self)
        return "\n\n".join([repr(self), str(self.fit_.report), str(table(self.fit_.model))])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fit_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    def _encode(self, X: Any, *, learn: bool) -> np.ndarray:
        """The inputs as numbers; columns and their names must be those of the training data."""
        if not is_frame(X):
            refuse_units(X, "X")
            X = X if isinstance(X, list | tuple | np.ndarray) or is_sparse(X) else np.asarray(X)
            if np.ndim(X) != 2:
                Encoding.of(X)
        validate_data(self, X, reset=learn, skip_check_array=True)
        if learn:
            self.encoding_ = Encoding.of(X)
        return self.encoding_.apply(X).astype(float)

    def _inputs(self, X: Any) -> np.ndarray:
        """New inputs as numbers."""
        check_is_fitted(self)
        return self._encode(X, learn=False)

    def _recipe(self) -> Recipe:
        """The arguments, checked."""
        words = {name: value for name, value in self.get_params(deep=False).items() if name in WORDS}
        state = self.random_state
        seed = int(state) if isinstance(state, Integral) else int(check_random_state(state).randint(2**31 - 1))
        return Recipe(**words, seed=seed, progress=bool(self.verbose))


class AbstractSupervised(AbstractEstimator):
    """Inputs and targets."""

    num_rows_seen_: float

    @abc.abstractmethod
    def _read_targets(self, y: Any, num_rows: int, *, learn: bool) -> np.ndarray:
        """Targets as floats [N, P]."""

    def _train(self, recipe: Recipe, rows: Rows) -> None:
        self.fit_ = train(recipe, rows)
        self.num_rows_seen_ = float(rows.counts.sum())

    def _train_more(self, X: Any, y: Any, sample_weight: Any) -> None:
        recipe, rows = self._recipe(), self._rows(X, y, sample_weight, learn=False)
        seen = self.num_rows_seen_ + float(rows.counts.sum())
        self.fit_ = train_more(recipe, self.fit_, rows, seen)
        self.num_rows_seen_ = seen

    def _rows(self, X: Any, y: Any, sample_weight: Any, *, learn: bool) -> Rows:
        x = self._encode(X, learn=learn)
        targets = self._read_targets(y, len(x), learn=learn)
        weights = None if sample_weight is None else read_weights(sample_weight, len(x), "sample weight")
        encoding = self.encoding_
        return Rows(
            x, targets, weights, encoding.gaps, input_names=encoding.output_names,
            circles=tuple(encoding.circles.values()),
        )  # fmt: skip
