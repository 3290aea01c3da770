"""Exact and sparse regression: only the model is trained; the posterior follows in closed form."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from ..data import Dataset
from ..errors import InputError
from ..model import DeepGP
from ..objectives import (
    FourierStatistics,
    collapsed_bound,
    collapsed_bound_from,
    has_fourier_statistics,
    log_evidence,
)
from ..posteriors import ExactPosterior, one_gp_layer, optimal_posterior
from ._base import AbstractMethod
from ._lbfgs import LBFGS
from ._memory import refuse_beyond_memory
from ._mismatch import check_model

CHUNK_ROWS = 10_000
"""Rows at a time for what isn't differentiated, where chunks cost nothing."""
MATRICES = 3
"""Of all rows by all rows, that there are at once: the covariance, its factor and its inverse."""


class Exact(AbstractMethod):
    """Exact GP regression by the log evidence: O(N³)."""

    def check(self, model, data):
        if isinstance(data, Dataset):
            refuse_beyond_memory(
                MATRICES * data.num_rows**2 * data.x.dtype.itemsize,
                f"Exact inference on {data.num_rows:,} rows",
                'Use inference="sparse" or "variational", or fewer rows.',
            )
        return check_model(model, data)

    def target(self, model, data):
        return conjugate_model(model, data)

    def terms(self, target, data, key):
        return log_evidence(target, data)

    def finish(self, target, data):
        return target, ExactPosterior.condition(target, data)

    def largest_matrix(self, model, data):
        return data.num_rows

    def default_engine(self):
        return LBFGS()


class Sparse(AbstractMethod):
    """Sparse GP regression by the collapsed bound [Titsias 2009]: O(N·M²), in chunks of rows if asked.

    With Fourier features the rows are read twice in all, and a step costs O(M³) whatever their number.
    """

    chunk_rows: int | None = eqx.field(static=True, default=None)

    @property
    def warm_up(self):
        """Locations stay until the length scales are right: from a poor start they scatter and get stuck."""
        return ("*.inducing",)

    def target(self, model, data):
        return conjugate_model(model, data)

    def prepare(self, target, data):
        return FourierStatistics.of(target, data, self.chunk_rows) if has_fourier_statistics(target) else data

    def terms(self, target, data, key):
        if isinstance(data, FourierStatistics):
            return collapsed_bound_from(data, target)
        return collapsed_bound(target, data, self.chunk_rows)

    def finish(self, target, data):
        return target, optimal_posterior(target, data, self.chunk_rows or CHUNK_ROWS)

    def default_engine(self):
        return LBFGS()


def conjugate_model(model: DeepGP, data: Dataset) -> DeepGP:
    """The model, if its posterior has a closed form on these data; otherwise an error that says what to do."""
    one_gp_layer(model)
    missing = int(jnp.sum(jnp.isnan(data.y)))
    if missing:
        raise InputError(
            f"{missing} outputs are missing (NaN), which exact and collapsed inference can't leave out. "
            'Use inference="variational", or drop the rows with dataset(..., missing="drop").'
        )
    return model
