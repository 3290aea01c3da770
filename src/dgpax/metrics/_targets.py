"""Targets that are checked once and carry which of them are observed."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax.core import Tracer

from ..errors import InputError
from ..typing import Array, Bool, Float, Scalar, Shaped


class Targets(NamedTuple):
    """`values` [N, P] without NaN (a missing one holds its prediction) and which of them are `observed`."""

    values: Float[Array, "N P"]
    observed: Bool[Array, "N P"]

    def average(self, scores: Shaped[Array, "N P"]) -> Scalar:
        """Mean over the observed entries."""
        scores = jnp.where(self.observed, scores, 0)
        return jnp.sum(scores, dtype=self.values.dtype) / jnp.sum(self.observed, dtype=self.values.dtype)


def as_targets(y, prediction: Float[Array, "..."]) -> Targets:
    """Check y [N, P] against the predictions of the same shape."""
    y = jnp.asarray(y)
    if prediction.ndim != 2:
        raise InputError(
            f"A metric needs one prediction per row and output, shape [N, P]; got {prediction.shape}. "
            "Wrap predictions that have a leading axis of samples in a Mixture."
        )
    if y.shape != prediction.shape:
        raise InputError(
            f"Targets and predictions must have the same shape [N, P]; got {y.shape} and {prediction.shape}. "
            "A single output needs its axis: y[:, None]."
        )
    require_rows(y)
    y = y.astype(jnp.result_type(y, prediction))
    observed = ~jnp.isnan(y)
    if known(observed) and not bool(jnp.any(observed)):
        raise InputError("Every target is NaN, so there is nothing to score. Pass rows with observed outputs.")
    return Targets(jnp.where(observed, y, prediction), observed)


def require_rows(array: Shaped[Array, "..."]) -> None:
    """Refuse an empty test set."""
    if array.size == 0:
        raise InputError(f"The test set is empty: targets of shape {array.shape}. Pass at least one row.")


def known(array: Shaped[Array, "..."]) -> bool:
    """Whether the values can be looked at, which isn't so inside jit, vmap or grad."""
    return not isinstance(array, Tracer)
