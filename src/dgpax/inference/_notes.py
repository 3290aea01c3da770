"""What is unusual about the data of a fit."""

from __future__ import annotations

import numpy as np

from ..data import Dataset
from ..likelihoods import GaussianNoise
from ..model import DeepGP

OUTLIER_DEVIATIONS = 1e3


def notes_about(model: DeepGP, data: Dataset, constant_columns: tuple[str, ...]) -> tuple[str, ...]:
    """What is unusual about the data, as sentences."""
    notes = []
    if constant_columns:
        notes.append(f"Constant columns have no influence: {', '.join(constant_columns)}.")
    if data.num_rows == 1:
        notes.append("There is one row only: parameters stay as they are, predictions are the prior's with one point.")
    outliers = _num_outliers(np.asarray(data.y)) if isinstance(model.likelihood, GaussianNoise) else 0
    if outliers:
        notes.append(
            f"{outliers} of {data.y.size} targets lie more than {OUTLIER_DEVIATIONS:g} robust standard deviations from "
            "the median, which Gaussian noise can't explain: check them, or use likelihoods.StudentT."
        )
    return tuple(notes)


def _num_outliers(y: np.ndarray) -> int:
    """Targets far from the median of their column, in units of 1.4826 × the median absolute deviation."""
    distance = np.abs(y - np.nanmedian(y, axis=0))
    deviation = 1.4826 * np.nanmedian(distance, axis=0)
    return int(np.sum((deviation > 0) & (distance > OUTLIER_DEVIATIONS * deviation)))
