"""Targets as people have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError


def read_numbers(y: Any, num_rows: int | None = None) -> np.ndarray:
    """Targets as floats [N, P]; NaN is a missing one, and every row and column has some."""
    if y is None:
        raise InputError("The regressor requires y to be passed, but the target y is None.")
    values = np.asarray(y)
    if values.dtype.kind == "c":
        raise InputError("Complex data not supported; y is complex.")
    if values.dtype.kind not in "fiub":
        values = _as_floats(values)
    if values.ndim not in (1, 2) or 0 in values.shape:
        raise InputError(f"y must have shape (rows,) or (rows, outputs) and not be empty; got {values.shape}.")
    values = values.reshape(len(values), -1).astype(float)
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
    values = np.asarray(y)
    if len(values) != num_rows:
        raise InputError(f"X and y must have the same number of rows; X has {num_rows}, y has {len(values)}.")
    return values


def read_weights(sample_weight: Any, num_rows: int) -> np.ndarray:
    """How often every row counts, [N]."""
    weights = np.asarray(sample_weight, float)
    if weights.shape != (num_rows,):
        raise InputError(f"One sample weight per row is needed, {num_rows} in all; got shape {weights.shape}.")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise InputError("Sample weights must be finite and not negative.")
    if not np.any(weights > 0):
        raise InputError("Sample weights must contain at least one non-zero number.")
    return weights


def _as_floats(values: np.ndarray) -> np.ndarray:
    try:
        return np.array([np.nan if entry is None else entry for entry in values.ravel()], float).reshape(values.shape)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"The targets aren't numbers (dtype {values.dtype}). Use DeepGPClassifier for labels."
        ) from error
