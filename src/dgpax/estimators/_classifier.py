"""Classification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from ..errors import InputError
from ..prediction import class_probabilities
from ._base import AbstractSupervised
from ._targets import read_labels


@dataclass(eq=False, repr=False)
class DeepGPClassifier(ClassifierMixin, AbstractSupervised):
    """Classification with calibrated probabilities by a deep Gaussian process. No argument needs tuning.

    Labels are of any type, text as well. Two classes have a probit likelihood, more a softmax. The arguments are those
    of `DeepGPRegressor`, for `inference` "variational" and "sghmc".

    >>> import numpy as np
    >>> from dgpax import DeepGPClassifier
    >>> x = np.linspace(-1.0, 1.0, 40)[:, None]
    >>> labels = np.where(x[:, 0] > 0.0, "warm", "cold")
    >>> model = DeepGPClassifier(max_steps=100).fit(x, labels)
    >>> model.predict([[-0.9], [0.9]])
    array(['cold', 'warm'], dtype='<U4')
    >>> model.predict_proba(x).shape
    (40, 2)
    """

    num_layers: int | None = None
    posterior: str = "mean-field"
    inference: str = "variational"
    kernel: str | None = None
    num_inducing: int | None = None
    max_steps: int | None = None
    max_time: float | int | None = None
    batch_size: int | None = None
    random_state: Any = 0
    verbose: bool | int = False

    def fit(self, X, y, sample_weight=None) -> DeepGPClassifier:
        """Train on a table of inputs [N, D] and labels [N]. A weight of 2 is the row twice."""
        return self._start(X, y, sample_weight, None)

    def partial_fit(self, X, y, classes=None, sample_weight=None) -> DeepGPClassifier:
        """Go on with new rows; see `DeepGPRegressor.partial_fit`. The first call needs all `classes`, unless its labels
        have them all."""
        if not hasattr(self, "fit_"):
            return self._start(X, y, sample_weight, classes)
        self._train_more(X, y, sample_weight)
        return self

    def predict_proba(self, X) -> np.ndarray:
        """The probability of every class, [N, C], in the order of `classes_`."""
        x = self._inputs(X)
        each = np.asarray(class_probabilities(self.fit_, x))[:, : len(self.classes_)]
        return each / each.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def predict(self, X) -> np.ndarray:
        """The most probable class."""
        most_probable = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[most_probable]

    def _start(self, X, y, sample_weight, classes) -> DeepGPClassifier:
        recipe = self._recipe()
        self.classes_: Any = None if classes is None else np.unique(classes)
        rows = self._rows(X, y, sample_weight, learn=True)
        self._train(recipe, rows._replace(num_classes=len(self.classes_)))
        return self

    def _read_targets(self, y, num_rows, *, learn):
        values = column_or_1d(read_labels(y, num_rows), warn=True)
        check_classification_targets(values)
        found = np.unique(values)
        if self.classes_ is None:
            self.classes_ = found
        unknown = np.setdiff1d(found, self.classes_)
        if len(unknown):
            raise InputError(f"Labels that aren't among the classes: {unknown[:5]}. Name all in classes=.")
        return np.searchsorted(self.classes_, values).astype(float)[:, None]
