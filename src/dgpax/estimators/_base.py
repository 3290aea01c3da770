"""What all estimators share: tables in, settings checked, a fit described."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..data import Encoding, is_frame
from ..inference import Fit, FitReport
from ..parameters import table
from ..stride import StrideReport
from ._likelihoods import Observation
from ._plan import Plan
from ._rows import Rows
from ._targets import read_weights


class AbstractEstimator(BaseEstimator):
    """A scikit-learn estimator around a fit. Arguments are stored as they come and checked in `fit`.

    After `fit`: `fit_` (what `dgpax.fit` returns), `encoding_` (how a table becomes numbers), `n_features_in_`, and
    `feature_names_in_` where the table had names.
    """

    random_state: Any
    fit_: Any
    """A Fit, or a StrideFit for inference="stride"."""
    encoding_: Encoding
    feature_names_in_: Any

    @property
    def fit_report_(self) -> FitReport | StrideReport:
        """What happened during the fit."""
        check_is_fitted(self)
        return self.fit_.report

    def summary(self) -> str:
        """The settings, the fit and the parameters as text."""
        check_is_fitted(self)
        lines = [repr(self), "", str(self.fit_.report)]
        if isinstance(self.fit_, Fit):
            lines += ["", str(table(self.fit_.model))]
        return "\n".join(lines)

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
            X = X if isinstance(X, list | tuple | np.ndarray) or issparse(X) else np.asarray(X)
            if np.ndim(X) != 2:
                Encoding.of(X)
        validate_data(self, X, reset=learn, skip_check_array=True)
        if learn:
            self.encoding_ = Encoding.of(X)
        return self.encoding_.apply(X).astype(float)

    def _seed(self) -> int:
        state = self.random_state
        return state if isinstance(state, int) else int(check_random_state(state).randint(2**31 - 1))


class AbstractSupervised(AbstractEstimator):
    """Inputs and targets."""

    num_layers: int | None
    posterior: str
    inference: str
    num_inducing: int | None
    max_steps: int | None
    max_time: float | int | None
    batch_size: int | None
    verbose: bool | int
    num_rows_seen_: float

    @abc.abstractmethod
    def _read_targets(self, y: Any, num_rows: int, *, learn: bool) -> np.ndarray:
        """Targets as floats [N, P]."""

    def _plan(self) -> Plan:
        return Plan(
            inference=self.inference,
            posterior=self.posterior,
            num_layers=self.num_layers,
            num_inducing=self.num_inducing,
            max_steps=self.max_steps,
            max_time=self.max_time,
            batch_size=self.batch_size,
            seed=self._seed(),
            verbose=bool(self.verbose),
        )

    def _train(self, plan: Plan, rows: Rows, observed: Observation) -> None:
        self.fit_ = plan.train(rows, observed)
        self.num_rows_seen_ = float(rows.weights.sum())

    def _train_more(self, X: Any, y: Any, sample_weight: Any) -> None:
        plan = self._plan()
        rows = self._rows(X, y, sample_weight, learn=False)
        seen = self.num_rows_seen_ + float(rows.weights.sum())
        self.fit_ = plan.train_more(self.fit_, rows, seen)
        self.num_rows_seen_ = seen

    def _rows(self, X: Any, y: Any, sample_weight: Any, *, learn: bool) -> Rows:
        x = self._encode(X, learn=learn)
        targets = self._read_targets(y, len(x), learn=learn)
        return Rows(x, targets, np.ones(len(x)) if sample_weight is None else read_weights(sample_weight, len(x)))
