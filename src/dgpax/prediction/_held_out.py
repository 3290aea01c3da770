"""Rows that a fit doesn't see, to stop by."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import logsumexp

from ..data import Dataset
from ..errors import InputError
from ..inference import ModelAndPosterior
from ..propagate import draw_noise, propagate
from ..typing import Array, Float, PyTree


class HeldOut(eqx.Module):
    """The mean log density of rows that the fit doesn't see, in raw units: a monitor for `StopWhenStale`.

    Every look takes the same `num_samples` draws of the inner layers, so that scores differ by the state alone. It is
    for variational inference.

    >>> import numpy as np
    >>> import dgpax
    >>> from dgpax.inference import NaturalGradient, StopWhenStale
    >>> from dgpax.prediction import HeldOut
    >>> x = np.linspace(0.0, 1.0, 40)[:, None]
    >>> data = dgpax.dataset(x[::2], np.sin(6.0 * x[::2]))
    >>> rows = dgpax.dataset(x[1::2], np.sin(6.0 * x[1::2]))
    >>> rule = StopWhenStale(HeldOut(rows), every=10, patience=2)
    >>> engine = NaturalGradient(max_steps=30)
    >>> fitted = dgpax.fit(
    ...     dgpax.deep_gp(data, 2, 5), data, "variational", engine=engine, stopping=rule, progress=False
    ... )
    >>> len(rule.scores) > 0
    True
    """

    rows: Dataset
    num_samples: int = eqx.field(static=True, default=20)

    def __check_init__(self):
        if self.num_samples < 1:
            raise InputError(f"HeldOut(num_samples=...) must be at least 1; got {self.num_samples}.")

    def __call__(self, target: PyTree) -> float:
        if not isinstance(target, ModelAndPosterior):
            raise InputError(
                f"HeldOut watches variational inference, which trains a model and its posterior; this fit trains a "
                f"{type(target).__name__}. Use inference='variational', or a monitor of your own."
            )
        return float(_mean_log_density(target, target.model.to_model_units(self.rows), self.num_samples))


@eqx.filter_jit
def _mean_log_density(target: ModelAndPosterior, rows: Dataset, num_samples: int) -> Float[Array, ""]:
    """By the mixture over samples of the inner layers; `rows` are in the model's units."""
    model, posterior = target
    noise = draw_noise(model.layers, jr.key(0), num_samples, rows.num_rows, rows.x.dtype)
    q = propagate(model.layers, posterior, rows.x, posterior.begin(model.layers), noise)
    density = model.likelihood.predictive_log_prob(q, rows.y)
    if density.ndim == 2:
        density = logsumexp(density, axis=0) - jnp.log(density.shape[0])
    if model.scaling is not None:
        jacobian = model.scaling.log_jacobian.astype(rows.y.dtype)
        density = density + jnp.sum(jnp.where(jnp.isnan(rows.y), 0.0, jacobian), axis=-1)
    return jnp.mean(density)
