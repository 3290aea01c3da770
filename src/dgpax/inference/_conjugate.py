"""Exact and sparse regression: only the model is trained; the posterior follows in closed form."""

from __future__ import annotations

import abc
import math
from typing import ClassVar

import equinox as eqx
import numpy as np

from ..data import Dataset
from ..errors import InputError, UnknownNameError
from ..model import DeepGP
from ..objectives import (
    AbstractTerms,
    FourierStatistics,
    collapsed_bound,
    collapsed_bound_from,
    has_fourier_statistics,
    log_evidence,
)
from ..parameters import find, freeze, with_weak_priors
from ..posteriors import ExactPosterior, one_gp_layer, optimal_posterior
from ..typing import PyTree
from ._base import AbstractMethod
from ._hyperparameters import WithJacobian, averaged_outcome, sampled_outcome
from ._lbfgs import LBFGS
from ._memory import refuse_beyond_memory
from ._mismatch import check_model
from ._nuts import NUTS, ModelAndDraws
from ._outcome import gp_outcome
from ._starts import worthwhile_starts

CHUNK_ROWS = 10_000
"""Rows at a time for what isn't differentiated, where chunks cost nothing."""
OUTCOMES = {"point": gp_outcome, "averaged": averaged_outcome, "sampled": sampled_outcome}
MATRICES = 3
"""Of all rows by all rows, that there are at once: the covariance, its factor and its inverse."""


class AbstractConjugate(AbstractMethod):
    """One layer with Gaussian noise, whose inducing outputs are integrated out.

    `hyperparameters` is "point" (the values at which the objective is highest), "averaged" (predictions are a mixture
    over `num_draws` values around these, weighed by how probable they are) or "sampled" (over as many draws by `NUTS`).
    The latter two are for few rows, where one value claims to know too much; parameters without a prior get a wide one
    around where they start.
    """

    needs_all_rows: ClassVar[bool] = True

    hyperparameters: eqx.AbstractVar[str]
    num_draws: eqx.AbstractVar[int]

    def __check_init__(self):
        name = type(self).__name__
        if self.hyperparameters not in OUTCOMES:
            raise UnknownNameError(
                f"{name}(hyperparameters={self.hyperparameters!r}) isn't known. There are: {', '.join(OUTCOMES)}."
            )
        if self.num_draws < 1:
            raise InputError(f"{name}(num_draws=...) must be at least 1; got {self.num_draws}.")

    @abc.abstractmethod
    def evidence(self, model: DeepGP, data: PyTree) -> AbstractTerms:
        """log p(y), or a bound of it, at a model's parameters."""

    def target(self, model, data):
        model = conjugate_model(model, data)
        if self.hyperparameters == "point":
            return model
        believed = with_weak_priors(model)
        return believed if self.hyperparameters == "averaged" else ModelAndDraws.at(_held(believed), self.num_draws)

    def starts(self, target, data):
        return [target] if self.hyperparameters == "sampled" else worthwhile_starts(self, target, data)

    def terms(self, target, data, key):
        model = _model_of(target)
        own = self.evidence(model, data)
        return own if self.hyperparameters == "point" else WithJacobian.of(own, model)

    def outcome(self, target, model, data, scaled):
        return OUTCOMES[self.hyperparameters](self, target, model, data, scaled)

    @property
    def num_chains(self) -> int:
        """Of NUTS: as many as the draws can be shared by, four at most."""
        return math.gcd(self.num_draws, 4)

    def default_engine(self):
        sampled = self.hyperparameters == "sampled"
        return NUTS(num_draws=self.num_draws, num_chains=self.num_chains) if sampled else LBFGS()


class Exact(AbstractConjugate):
    """Exact GP regression by the log evidence: O(N³)."""

    hyperparameters: str = eqx.field(static=True, default="point")
    num_draws: int = eqx.field(static=True, default=16)

    def check(self, model, data):
        if isinstance(data, Dataset):
            refuse_beyond_memory(
                MATRICES * data.num_rows**2 * data.x.dtype.itemsize,
                f"Exact inference on {data.num_rows:,} rows",
                'Use inference="sparse" or "variational", or fewer rows.',
            )
        return check_model(model, data)

    def evidence(self, model, data):
        return log_evidence(model, data)

    def finish(self, target, data):
        return target, ExactPosterior.condition(target, data)

    def largest_matrix(self, model, data):
        return data.num_rows


class Sparse(AbstractConjugate):
    """Sparse GP regression by the collapsed bound [Titsias 2009]: O(N·M²), in chunks of rows if asked.

    With Fourier features the rows are read twice in all, and a step costs O(M³) whatever their number.
    """

    chunk_rows: int | None = eqx.field(static=True, default=None)
    hyperparameters: str = eqx.field(static=True, default="point")
    num_draws: int = eqx.field(static=True, default=16)

    @property
    def warm_up(self):
        """Locations stay until the length scales are right: from a poor start they scatter and get stuck."""
        return ("*.inducing",)

    def prepare(self, target, data):
        model = _model_of(target)
        return FourierStatistics.of(model, data, self.chunk_rows) if has_fourier_statistics(model) else data

    def evidence(self, model, data):
        if isinstance(data, FourierStatistics):
            return collapsed_bound_from(data, model)
        return collapsed_bound(model, data, self.chunk_rows)

    def finish(self, target, data):
        return target, optimal_posterior(target, data, self.chunk_rows or CHUNK_ROWS)


def _model_of(target: PyTree) -> DeepGP:
    return target.model if isinstance(target, ModelAndDraws) else target


def _held(model: DeepGP) -> DeepGP:
    """With its inducing variables held: they belong to the approximation, not to what is believed."""
    return freeze(model, "*.inducing") if any(".inducing" in name for name in find(model)) else model


def conjugate_model(model: DeepGP, data: Dataset) -> DeepGP:
    """The model, if its posterior has a closed form on these data; otherwise an error that says what to do."""
    one_gp_layer(model)
    missing = int(np.sum(np.isnan(data.y)))
    if missing:
        raise InputError(
            f"{missing} outputs are missing (NaN), which exact and collapsed inference can't leave out. "
            'Use inference="variational", or drop the rows with dataset(..., missing="drop").'
        )
    return model
