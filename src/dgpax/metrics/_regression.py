"""Accuracy of point predictions, and proper scores of predictive distributions."""

from __future__ import annotations

import jax.numpy as jnp

from ..distributions import AbstractDistribution, Gaussian
from ..typing import Array, ArrayLike, Float, Scalar, Shaped
from ._targets import as_targets


def rmse(y: Shaped[ArrayLike, "..."], prediction: AbstractDistribution | Float[ArrayLike, "..."]) -> Scalar:
    """Root mean squared error of the predictive mean (or of the array).

    >>> import jax.numpy as jnp
    >>> from dgpax.distributions import Gaussian
    >>> from dgpax.metrics import rmse
    >>> y, prediction = jnp.asarray([[0.0], [3.0]]), Gaussian(jnp.zeros((2, 1)), jnp.ones((2, 1)))
    >>> round(float(rmse(y, prediction)), 4)
    2.1213
    """
    point = _point(prediction)
    targets = as_targets(y, point)
    return jnp.sqrt(targets.average((targets.values - point) ** 2))


def mae(y: Shaped[ArrayLike, "..."], prediction: AbstractDistribution | Float[ArrayLike, "..."]) -> Scalar:
    """Mean absolute error of the predictive mean (or of the array: pass `distribution.median` for the best one)."""
    point = _point(prediction)
    targets = as_targets(y, point)
    return targets.average(jnp.abs(targets.values - point))


def smse(y: Shaped[ArrayLike, "..."], prediction: AbstractDistribution | Float[ArrayLike, "..."]) -> Scalar:
    """Standardised mean squared error: the mean squared error over the variance of the test targets.

    Rasmussen & Williams 2006, section 2.5. The variance is that of the observed targets of each output (divisor n),
    so that predicting their mean scores exactly 1; the ratio is taken per output and averaged over the outputs.
    It is not finite where an output's targets are all equal.
    """
    point = _point(prediction)
    values, observed = as_targets(y, point)
    count = jnp.sum(observed, axis=0)
    centre = jnp.sum(jnp.where(observed, values, 0.0), axis=0) / count
    error = jnp.sum(jnp.where(observed, (values - point) ** 2, 0.0), axis=0)
    total = jnp.sum(jnp.where(observed, (values - centre) ** 2, 0.0), axis=0)
    return jnp.mean(error / total, where=count > 0)


def nlpd(y: Shaped[ArrayLike, "..."], distribution: AbstractDistribution) -> Scalar:
    """Negative mean log predictive density, −mean log p(y_np); for a mixture the density is the weighted sum.

    >>> import jax.numpy as jnp
    >>> from dgpax.distributions import Gaussian
    >>> from dgpax.metrics import nlpd
    >>> y, prediction = jnp.asarray([[0.0], [3.0]]), Gaussian(jnp.zeros((2, 1)), jnp.ones((2, 1)))
    >>> round(float(nlpd(y, prediction)), 4)
    3.1689
    """
    targets = as_targets(y, distribution.mean)
    return -targets.average(distribution.log_prob(targets.values))


def mnll_stride(
    y: Shaped[ArrayLike, "..."], mean: Float[ArrayLike, "..."], noise_variance: Float[ArrayLike, "..."]
) -> Scalar:
    """½ log(2πγ²) + |y − mean|²/(2pγ²)   [Latz, Teckentrup & Urbainczyk, STRIDE, eq. (6)].

    The density of a Gaussian with the noise variance γ² alone around the predictive mean: the uncertainty about the
    function isn't in it. For comparison with that paper; `nlpd` is the proper score.
    """
    mean = _point(mean)
    return nlpd(y, Gaussian(mean, jnp.broadcast_to(jnp.asarray(noise_variance, mean.dtype), mean.shape)))


def crps(y: Shaped[ArrayLike, "..."], distribution: AbstractDistribution) -> Scalar:
    """Mean continuous ranked probability score, in the units of y   [Gneiting & Raftery 2007, eq. (21)].

    >>> import jax.numpy as jnp
    >>> from dgpax.distributions import Gaussian
    >>> from dgpax.metrics import crps
    >>> y, prediction = jnp.asarray([[0.0], [3.0]]), Gaussian(jnp.zeros((2, 1)), jnp.ones((2, 1)))
    >>> round(float(crps(y, prediction)), 4)
    1.3351
    """
    targets = as_targets(y, distribution.mean)
    return targets.average(distribution.crps(targets.values))


def _point(prediction) -> Float[Array, "..."]:
    return prediction.mean if isinstance(prediction, AbstractDistribution) else jnp.asarray(prediction)
