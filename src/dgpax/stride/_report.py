"""What happened during a STRIDE fit."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class StrideReport:
    """Numbers to trust or distrust a fit by. `print` it. Arrays have an entry per iteration."""

    num_rows: int
    num_particles: int
    iterations: int
    seconds: float
    """Of sampling and selection, compilation included."""
    seconds_initial: float
    """Of the sparse GP that gave the hyperparameters."""
    proposal_scale: float
    frozen: bool
    """Whether the proposal scale was held during the last expectation step, as a valid sampler needs."""
    effective_sample_size: float
    """Of the log-likelihood over all particles, in the last expectation step."""
    r_hat: float
    """Of the log-likelihood between particles, in the last expectation step."""
    never_moved: int
    """Particles that accepted nothing in the last expectation step."""
    hidden_error: float
    """Part of the first layer's variance that a cross approximation leaves out; NaN for the other methods."""
    acceptance_rate: np.ndarray = field(repr=False)
    log_likelihood: np.ndarray = field(repr=False)
    """Mean over particles and steps."""
    bound: np.ndarray = field(repr=False)
    """Mean F_V over particles after the exchanges; NaN without inducing points."""
    exchanged: np.ndarray = field(repr=False)
    """Inducing points that changed."""
    interrupted: bool = False

    def __str__(self) -> str:
        lines = [f"{name.replace('_', ' '):<24} {_show(getattr(self, name))}" for name in self.__dataclass_fields__]
        return "\n".join(lines)


def _show(value) -> str:
    if isinstance(value, np.ndarray):
        return "none" if not len(value) else f"{value[0]:.4g} → {value[-1]:.4g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
