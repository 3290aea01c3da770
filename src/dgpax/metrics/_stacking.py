"""Weights of several predictive distributions."""

from __future__ import annotations

import numpy as np

from ..typing import Float

ITERATIONS = 1000
PRIOR_ROWS = 1.0


def stacking_weights(log_densities: Float[np.ndarray, "K N"]) -> Float[np.ndarray, " K"]:
    """Weights at which the mixture of K distributions has the highest log density at rows that none of them has seen
    [Yao et al. 2018, eq. 5], by expectation-maximisation; each starts with the weight of one row, so that few rows
    decide little.

    >>> import numpy as np
    >>> from dgpax.metrics import stacking_weights
    >>> bool(stacking_weights(np.array([[-1.0] * 50, [-2.0] * 50]))[0] > 0.9)
    True
    """
    densities = np.asarray(log_densities, float)
    num, rows = densities.shape
    weights = np.full(num, 1.0 / num)
    for _ in range(ITERATIONS):
        joint = np.log(weights)[:, None] + densities
        shares = np.exp(joint - np.logaddexp.reduce(joint, axis=0))
        moved = (shares.sum(axis=1) + PRIOR_ROWS / num) / (rows + PRIOR_ROWS)
        if np.max(np.abs(moved - weights)) < 1e-6:
            break
        weights = moved
    return weights
