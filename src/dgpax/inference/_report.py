"""What happened during a fit."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import numpy as np

from ..data import Dataset
from ..likelihoods import GaussianNoise
from ..model import DeepGP

OUTLIER_DEVIATIONS = 1e3


@dataclass(frozen=True)
class FitReport:
    """Numbers to trust or distrust a fit by. `print` it."""

    inference: str
    engine: str
    num_rows: int
    num_parameters: int
    steps: int
    seconds: float
    objective_start: float
    objective_end: float
    stopped_because: str
    converged: bool
    interrupted: bool
    resumed_at: tuple[int, ...]
    """The steps at which it went on from a checkpoint."""
    rejected_steps: int
    largest_jitter: float
    clipped_variances: int
    constant_columns: tuple[str, ...]
    notes: tuple[str, ...]
    history: np.ndarray = field(repr=False)
    """The objective at every step that was accepted."""

    def __str__(self) -> str:
        rows = {name: value for name, value in asdict(self).items() if name not in ("history", "notes")}
        lines = [f"{name.replace('_', ' '):<20} {_show(value)}" for name, value in rows.items()]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


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


def _show(value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value) or "none"
    return str(value)
