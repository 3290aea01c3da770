"""The usual scores together."""

from __future__ import annotations

from ..distributions import AbstractDistribution
from ..typing import ArrayLike, Shaped
from ._calibration import calibration_error, coverage, mean_width
from ._regression import crps, mae, nlpd, rmse, smse


def regression_report(
    y: Shaped[ArrayLike, "..."], distribution: AbstractDistribution, level: float = 0.9
) -> dict[str, float]:
    """rmse, mae, smse, nlpd, crps, coverage and mean_width of the central `level` intervals, calibration_error.

    >>> import jax.numpy as jnp
    >>> from dgpax.distributions import Gaussian
    >>> from dgpax.metrics import regression_report
    >>> y, prediction = jnp.asarray([[0.0], [3.0]]), Gaussian(jnp.zeros((2, 1)), jnp.ones((2, 1)))
    >>> sorted(regression_report(y, prediction))
    ['calibration_error', 'coverage', 'crps', 'mae', 'mean_width', 'nlpd', 'rmse', 'smse']
    """
    scores = {score.__name__: score(y, distribution) for score in (rmse, mae, smse, nlpd, crps, calibration_error)}
    scores |= {"coverage": coverage(y, distribution, level), "mean_width": mean_width(distribution, level)}
    return {name: float(value) for name, value in scores.items()}
