"""What an exact fit would have said about its own rows without them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from ..errors import InputError
from ..fits import AbstractFit, Fit
from ..linalg import matmul, solve_lower
from ..model import DeepGP
from ..posteriors import ExactPosterior
from ..programs import compiled
from ..typing import Array, Float, Int

LOG_2PI = 1.8378770664093453


def leave_one_out(fitted: AbstractFit) -> Float[Array, " N"]:
    """log p(y_n | all other rows), outputs together, in raw units, for every training row of an exact fit.

    In closed form at the hyperparameters that all rows gave [Rasmussen & Williams 2006, eqs. 5.10-5.12]. Where these
    are averaged over, each counts as much as the other rows say: 1/p(y_n | others) is the mean of the members'
    [Gelfand, Dey & Chang 1992].

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    >>> dgpax.prediction.leave_one_out(fitted).shape
    (20,)
    """
    each = [np.log(weight) - _log_densities(*part) for weight, part in _exact_parts(fitted)]
    return -logsumexp(jnp.stack(each), axis=0)


def leave_folds_out(fitted: AbstractFit, folds: Int[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """As `leave_one_out`, without all rows of the same fold: `folds` has a number for every row.

    With P = K⁻¹, y_F given the other rows has the covariance [P_FF]⁻¹ and is that times [Py]_F away from its mean.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> data = dgpax.dataset(x, np.sin(6.0 * x))
    >>> fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    >>> one_each = dgpax.prediction.leave_folds_out(fitted, np.arange(20))
    >>> bool(np.allclose(one_each, dgpax.prediction.leave_one_out(fitted)))
    True
    """
    parts = _exact_parts(fitted)
    numbers, folds = np.unique(np.asarray(folds), return_inverse=True)
    alone, together = np.zeros((len(parts), len(folds))), np.zeros((len(parts), len(numbers)))
    for index, (weight, part) in enumerate(parts):
        inverse, solved = (np.asarray(values, float) for values in _solved(*part))
        for number in range(len(numbers)):
            rows = np.flatnonzero(folds == number)
            alone[index, rows], joint = _of_fold(inverse[:, rows[:, None], rows], solved[:, rows])
            together[index, number] = np.log(weight) - joint
        alone[index] += _shift(part[0])
    weights = together - np.logaddexp.reduce(together, axis=0)
    return np.logaddexp.reduce(weights[:, folds] + alone, axis=0)


def _of_fold(inverse: Float[np.ndarray, "P F F"], solved: Float[np.ndarray, "P F"]):
    """Log densities of the rows by themselves, and of all together, from their entries of K⁻¹ and K⁻¹y."""
    covariance = np.linalg.inv(inverse)
    error = (covariance @ solved[..., None])[..., 0]
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    alone = -0.5 * np.sum(np.log(variance) + LOG_2PI + error**2 / variance, axis=0)
    together = 0.5 * np.sum(np.linalg.slogdet(inverse)[1] - LOG_2PI * solved.shape[1] - np.sum(error * solved, axis=1))
    return alone, together


def _exact_parts(fitted: AbstractFit) -> list[tuple[float, tuple[DeepGP, ExactPosterior]]]:
    parts = []
    for weight, part in fitted.parts:
        if not (isinstance(part, Fit) and isinstance(part.posterior, ExactPosterior)):
            raise InputError(
                'Rows can be left out of exact fits, inference="exact", in closed form; hold rows out of the '
                "training data of others."
            )
        parts.append((weight, (part.model, part.posterior)))
    return parts


@compiled
def _log_densities(model: DeepGP, posterior: ExactPosterior) -> Float[Array, " N"]:
    """[K⁻¹y]_n/[K⁻¹]_nn is the error of the mean, 1/[K⁻¹]_nn the variance."""
    inverse, solved = _solved(model, posterior)
    precision = jnp.diagonal(inverse, axis1=-2, axis2=-1)
    density = 0.5 * (jnp.log(precision) - LOG_2PI - solved**2 / precision)
    return jnp.sum(density, axis=0) + _shift(model)


@compiled
def _solved(model: DeepGP, posterior: ExactPosterior) -> tuple[Float[Array, "P N N"], Float[Array, "P N"]]:
    """K⁻¹ and K⁻¹y of every output."""
    w, L = posterior.whitened, posterior.root.factor
    L = jnp.broadcast_to(L, (len(w), *L.shape[-2:]))
    root = solve_lower(L, jnp.broadcast_to(jnp.eye(L.shape[-1], dtype=L.dtype), L.shape))
    transposed = jnp.swapaxes(root, -1, -2)
    return matmul(transposed, root), matmul(transposed, w[..., None])[..., 0]


def _shift(model: DeepGP) -> Float[Array, ""] | float:
    return 0.0 if model.scaling is None else jnp.sum(model.scaling.log_jacobian)
