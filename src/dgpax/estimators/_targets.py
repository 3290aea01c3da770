"""Targets as people have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import as_numpy, missing_entries, numbers_of, read_outputs
from ..errors import InputError, InputTypeError


def read_numbers(y: Any, num_rows: int | None = None) -> np.ndarray:
    """Targets as floats [N, P]; NaN is a missing one, and every row and column has some."""
    if y is None:
        raise InputError("The regressor requires y to be passed, but the target y is None.")
    columns = read_outputs(numbers_of(y, "y", "Use DeepGPClassifier for labels."))
    values = np.asarray(columns.values).astype(float)
    if num_rows is not None and len(values) != num_rows:
        raise InputError(f"X and y must have the same number of rows; X has {num_rows}, y has {len(values)}.")
    if np.isinf(values).any():
        raise InputError("Input y contains infinity or a value too large. Leave these rows out.")
    missing = np.isnan(values)
    if missing.all(axis=1).any() or missing.all(axis=0).any():
        raise InputError(
            f"Input y contains NaN: {int(missing.all(axis=1).sum())} of {len(values)} rows have no target at all, or "
            "an output has none. Leave these out; single gaps among several outputs can stay."
        )
    return values


def read_labels(y: Any, num_rows: int) -> np.ndarray:
    """Labels [N] of any type, none missing."""
    if y is None:
        raise InputError("The classifier requires y to be passed, but the target y is None.")
    masked = int(np.ma.count_masked(y)) if isinstance(y, np.ma.MaskedArray) else 0
    values = as_numpy(y.data if isinstance(y, np.ma.MaskedArray) and not masked else y, "y")
    if values.dtype.kind in "Mm":
        raise InputTypeError(f"Times can't be labels (dtype {values.dtype}). Make them text or whole numbers.")
    if values.ndim < 1 or len(values) != num_rows:
        found = len(values) if values.ndim else 0
        raise InputError(f"X and y must have the same number of rows; X has {num_rows}, y has {found}.")
    missing = int(np.sum(missing_entries(values)))
    if missing:
        raise InputError(
            f"Input y contains NaN: {missing} of {values.size} labels are missing (None, NaN or masked). Leave these "
            "rows out."
        )
    return values
