"""What the report of a STRIDE fit says about its chains."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..inference import effective_sample_size, split_r_hat
from ._cross_approximation import CrossApproximatedHidden
from ._engine import StrideTarget

R_HAT_LIMIT = 1.1


def what_happened(target: StrideTarget, warm_up: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Details and notes. R̂ is the largest, the effective sample size the smallest over predictions at some rows and
    outputs, at the looks after the warm-up."""
    hidden, record = target.posterior.hidden, target.record
    details: dict[str, Any] = {
        "num_particles": target.chains.num_particles,
        "iterations": int(target.iterations),
        "proposal_scale": float(target.chains.scale),
    }
    if isinstance(hidden, CrossApproximatedHidden):
        details["hidden_error"] = float(hidden.relative_error)
    if record is None or not np.any(np.isfinite(record.acceptance)):
        return details, ()
    taken = np.isfinite(record.acceptance)
    frozen = taken & (np.arange(len(taken)) + int(target.iterations) - int(np.sum(taken)) >= warm_up)
    *by_iteration, log_likelihood, predictions = (np.asarray(values) for values in record)
    acceptance, never_moved, bound, exchanged = (values[taken] for values in by_iteration)
    log_likelihood = log_likelihood[frozen].reshape(-1, target.chains.num_particles)
    watched = predictions[frozen].reshape(*log_likelihood.shape, np.prod(predictions.shape[3:], dtype=int))
    each = [watched[..., index] for index in range(watched.shape[-1])]
    r_hat = float(np.max([split_r_hat(draws) for draws in each]))
    details |= {
        "r_hat": r_hat,
        "effective_sample_size": float(np.min([effective_sample_size(draws) for draws in each])),
        "r_hat_of_log_likelihood": split_r_hat(log_likelihood),
        "never_moved": int(never_moved[-1]),
        "acceptance_rate": acceptance,
        "bound": bound,
        "exchanged": exchanged,
    }
    if np.isnan(r_hat):
        return details, ("The chains ended too soon after their warm-up to say whether they mix.",)
    if r_hat <= R_HAT_LIMIT:
        return details, ()
    note = (
        f"The chains haven't mixed: R̂ of predictions is {r_hat:.2f}, more than {R_HAT_LIMIT}. Take the prediction for "
        "that of an ensemble that still depends on where it began, or go on: fit(architecture, data, fitted.more(10))."
    )
    return details, (note,)
