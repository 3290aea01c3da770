"""Rows that a fit doesn't see, to stop by."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from ..data import Dataset
from ..errors import InputError
from ..fits import latent
from ..inference import ModelAndPosterior
from ..model import DeepGP
from ..typing import PyTree
from ._likelihood import density_of_rows


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

    def __call__(self, target: PyTree) -> float:
        if not isinstance(target, ModelAndPosterior):
            raise InputError(
                f"HeldOut watches variational inference, which trains a model and its posterior; this fit trains a "
                f"{type(target).__name__}. Use inference='variational', or a monitor of your own."
            )
        model, posterior = target
        _check_columns(self.rows, model)
        rows = model.to_model_units(self.rows)
        over = "outputs" if model.layers[-1].num_outputs > 1 else None
        q: Any = latent(model, posterior, rows.x, num_samples=self.num_samples, seed=0, over=over)
        return float(jnp.mean(density_of_rows(model, q, rows.y)))


def _check_columns(rows: Dataset, model: DeepGP) -> None:
    """As far as the model knows what it was made for."""
    if model.scaling is None:
        return
    wanted = model.scaling.x_mean.shape[0], model.scaling.y_mean.shape[0]
    if (rows.num_inputs, rows.num_outputs) != wanted:
        raise InputError(
            f"The held-out rows have {rows.num_inputs} inputs and {rows.num_outputs} outputs, but the model is for "
            f"{wanted[0]} and {wanted[1]}. Take them from the same table: dgpax.data.split(data, 0.1, key)."
        )
