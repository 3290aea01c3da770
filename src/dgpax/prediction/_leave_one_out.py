"""What a fit would have said about each of its own rows without it."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from ..errors import InputError
from ..fits import AbstractFit, Fit
from ..linalg import solve_lower_transposed
from ..model import DeepGP
from ..posteriors import ExactPosterior
from ..programs import compiled
from ..typing import Array, Float

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
    each = []
    for weight, part in fitted.parts:
        if not (isinstance(part, Fit) and isinstance(part.posterior, ExactPosterior)):
            raise InputError(
                'leave_one_out() is for exact fits, inference="exact"; hold rows out of the training data of others.'
            )
        each.append(np.log(weight) - _log_densities(part.model, part.posterior))
    return -logsumexp(jnp.stack(each), axis=0)


@compiled
def _log_densities(model: DeepGP, posterior: ExactPosterior) -> Float[Array, " N"]:
    """r_n = [K⁻¹y]_n/[K⁻¹]_nn is the error of the mean, 1/[K⁻¹]_nn the variance."""
    L = posterior.root.factor
    inverse = solve_lower_transposed(L, jnp.broadcast_to(jnp.eye(L.shape[-1], dtype=L.dtype), L.shape))
    precision = jnp.sum(inverse**2, axis=-1)
    w = posterior.whitened
    solved = solve_lower_transposed(jnp.broadcast_to(L, (len(w), *L.shape[1:])), w[..., None])[..., 0]
    density = 0.5 * (jnp.log(precision) - LOG_2PI - solved**2 / precision)
    shift = jnp.zeros(len(w)) if model.scaling is None else model.scaling.log_jacobian
    return jnp.sum(density + shift[:, None], axis=0)
