"""Save and load."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import InputTypeError, ModelFileError
from ..estimators import AbstractEstimator
from ..fits import AbstractFit
from ..storage import read, write
from ._estimators import SavedEstimator, as_estimator, as_saved
from ._ranges import refuse_other_columns, refuse_ranges
from ._registry import REGISTRY
from ._table_model import TableModel
from ._use import traced

KIND = "dgpax model"
Saved = AbstractFit | TableModel


def save(
    fitted: Saved | AbstractEstimator, path: str | os.PathLike[str], *, own: Sequence[type | Callable] = ()
) -> None:
    """Write a fitted model or estimator to one file, or leave what was there if that fails.

    `own` names classes and functions that are not of dgpax, such as a kernel of yours or the warp of `kernels.Warped`:
    the file holds their names only, and `load_model` needs them again.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dgpax.save(fitted, f"{folder}/model.dgpax")
    ...     again = dgpax.load_model(f"{folder}/model.dgpax")
    >>> bool((dgpax.predict(again, x).mean == dgpax.predict(fitted, x).mean).all())
    True
    """
    value = as_saved(fitted) if isinstance(fitted, AbstractEstimator) else fitted
    if not isinstance(value, Saved | SavedEstimator):
        raise InputTypeError(f"save(fitted, path) takes what fit() returns; got {type(fitted).__name__}.")
    write(path, KIND, value, REGISTRY.with_own(tuple(own)))


def load_model(path: str | os.PathLike[str], *, own: Sequence[type | Callable] = ()) -> Any:
    """Read a fitted model; on the same machine it predicts what the saved one did, to the last bit.

    It is a fit or an estimator, whichever was saved. Of a file by `dgpax fit` it is a table's model, whose `fit` is the
    fit and whose `encoding` tells how a table becomes numbers.

    Everything in the file is checked first, and nothing in it is run: one from a stranger can at worst be a bad model.

    >>> import dgpax
    >>> dgpax.load_model("nowhere.dgpax")
    Traceback (most recent call last):
        ...
    dgpax.errors.ModelFileError: There is no file nowhere.dgpax...
    """
    value = read(path, KIND, REGISTRY.with_own(tuple(own)))
    if isinstance(value, SavedEstimator):
        return as_estimator(value)
    if not isinstance(value, Saved):
        raise ModelFileError(f"{path} holds a {type(value).__name__}, not a fitted model.")
    fitted = value.fit if isinstance(value, TableModel) else value
    refuse_ranges(fitted)
    if isinstance(value, TableModel):
        refuse_other_columns(value.encoding, fitted)
    if not own:  # what other people's classes need is theirs to know
        traced(fitted)
    return value
