"""From the words of an estimator to a fit."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import lru_cache

import equinox as eqx

from ..architectures import deep_gp, gp_regression, sparse_gp_regression
from ..data import Dataset, standardise
from ..errors import InputError, UnknownNameError
from ..inference import (
    LBFGS,
    SGHMC,
    AbstractEngine,
    Fit,
    Gradient,
    NaturalGradient,
    Sampling,
    Settling,
    Variational,
    fit,
)
from ..model import DeepGP
from ..posteriors import POSTERIORS, posterior_at_prior
from ..stride import Composition, Schedule, StrideFit, fit_stride
from ._inducing import LAST, suitable_counts, with_inducing
from ._likelihoods import Observation
from ._rows import Rows

INFERENCES = ("variational", "stride", "sghmc", "exact", "sparse")
ONE_LAYER = ("exact", "sparse")
GAUSSIAN_ONLY = ("stride", "exact", "sparse")
LEAST_STEPS, STEPS_PER_ROW, MOST_STEPS = 500, 4, 2000
ADAM_STEPS = 5000
BATCH_ROWS = 1000
"""Rows per step where there are more and nothing else is said."""
MORE_STEPS = 300
"""Steps of one call of partial_fit."""


@dataclass(frozen=True)
class Plan:
    """What an estimator was told, checked."""

    inference: str
    posterior: str
    num_layers: int | None
    num_inducing: int | None
    max_steps: int | None
    max_time: float | int | None
    batch_size: int | None
    seed: int
    verbose: bool
    started: float = field(default_factory=time.perf_counter)

    def __post_init__(self):
        if self.inference not in INFERENCES:
            raise UnknownNameError(f"inference={self.inference!r} isn't known. There are: {', '.join(INFERENCES)}.")
        if self.posterior not in POSTERIORS:
            raise UnknownNameError(f"posterior={self.posterior!r} isn't known. There are: {', '.join(POSTERIORS)}.")
        if self.inference in ONE_LAYER and self.num_layers not in (None, 1):
            raise InputError(f'inference="{self.inference}" is for one layer; got num_layers={self.num_layers}.')
        for name in ("num_layers", "num_inducing", "max_steps", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1; got {value}.")
        if self.inference == "stride" and self.max_time is not None:
            raise InputError('inference="stride" takes no max_time. Use max_steps.')

    @property
    def depth(self) -> int:
        """The number of layers."""
        return self.num_layers or (1 if self.inference in ONE_LAYER else 2)

    @property
    def takes_likelihoods(self) -> bool:
        """Whether the noise may be other than Gaussian."""
        return self.inference not in GAUSSIAN_ONLY

    def train(self, rows: Rows, observed: Observation) -> Fit | StrideFit:
        """A fit of these rows."""
        if observed.likelihood is not None and not self.takes_likelihoods:
            raise InputError(
                f'inference="{self.inference}" is for Gaussian noise; got {type(observed.likelihood).__name__}. Use '
                'inference="variational" or "sghmc".'
            )
        if not self.takes_likelihoods:
            return self._train_gaussian(rows.repeated(self.inference))
        merged = rows.merged()
        data, num_rows = merged.padded(), len(merged.x)
        model = self._model(data, num_rows, observed)
        batch_size = suitable_batch_size(self.batch_size, data)
        if self.inference == "sghmc":
            return self._fit(model, data, Sampling(), _sampler(self.max_steps, batch_size))
        method = Variational(posterior_at_prior(self.posterior, model.layers))
        max_steps = self.max_steps or self._suitable_steps(data.num_rows)
        return self._fit(model, data, method, settling(self._takes_natural_steps, batch_size, max_steps))

    def train_more(self, fitted: Fit | StrideFit, rows: Rows, num_seen: float) -> Fit:
        """Further steps on these rows, which stand for all that were seen."""
        if self.inference != "variational" or not isinstance(fitted, Fit):
            raise InputError(f'partial_fit is for inference="variational"; this is "{self.inference}". Use fit.')
        merged = rows.merged()
        data = merged._replace(weights=merged.weights * (num_seen / merged.weights.sum())).padded()
        batch_size = suitable_batch_size(self.batch_size, data)
        engine = settling(self._takes_natural_steps, batch_size, self.max_steps or MORE_STEPS)
        return self._fit(fitted.model, data, Variational(fitted.posterior), engine)

    def _suitable_steps(self, num_rows: int) -> int:
        if not self._takes_natural_steps:
            return ADAM_STEPS
        return min(max(LEAST_STEPS, STEPS_PER_ROW * num_rows), MOST_STEPS)

    @property
    def _takes_natural_steps(self) -> bool:
        return self.posterior != "points-as-locations"

    def _train_gaussian(self, data: Dataset) -> Fit | StrideFit:
        num_inducing = min(self.num_inducing or LAST, data.num_rows)
        if self.inference == "stride":
            schedule = Schedule() if self.max_steps is None else Schedule(num_steps=max(1, self.max_steps // 10))
            architecture = Composition(num_hidden=self.depth - 1)
            return fit_stride(
                data, architecture, num_inducing, schedule=schedule, seed=self.seed, progress=self.verbose
            )
        engine = LBFGS() if self.max_steps is None else LBFGS(max_steps=self.max_steps)
        if self.inference == "exact":
            return self._fit(gp_regression(data), data, "exact", engine)
        return self._fit(sparse_gp_regression(data, num_inducing, seed=self.seed), data, "sparse", engine)

    def _model(self, data: Dataset, num_rows: int, observed: Observation) -> DeepGP:
        model = deep_gp(data, self.depth, 1, likelihood=observed.likelihood, seed=self.seed)
        if observed.mean is not None:
            model = eqx.tree_at(lambda m: m.layers[-1].mean, model, observed.mean)
        if observed.standardised:
            model = DeepGP(model.layers, model.likelihood, standardise(data))
        coupled = self.inference == "variational" and self.posterior != "mean-field"
        counts = suitable_counts(num_rows, self.num_inducing, coupled)
        return with_inducing(model, model.to_model_units(data).counted().x, counts, self.seed)

    def _fit(self, model: DeepGP, data: Dataset, method, engine: AbstractEngine) -> Fit:
        left = None if self.max_time is None else max(0.0, self.max_time - (time.perf_counter() - self.started))
        return fit(model, data, method, engine=engine, seed=self.seed, max_seconds=left, progress=self.verbose)


def suitable_batch_size(wanted: int | None, data: Dataset) -> int | None:
    """None: all rows in every step."""
    size = wanted or BATCH_ROWS
    return size if size < data.num_rows else None


@lru_cache(maxsize=64)
def settling(natural: bool, batch_size: int | None, max_steps: int) -> Settling:
    """Cached, as an engine that is made anew has an optimiser of its own, and a program compiled for it."""
    settle_steps = max(1, min(200, max_steps // 3))
    if natural:
        return Settling(engine=NaturalGradient(batch_size=batch_size), max_steps=max_steps, settle_steps=settle_steps)
    engine = Gradient(batch_size=batch_size)  # too slow and noisy to tell when it is flat
    return Settling(engine=engine, max_steps=max_steps, settle_steps=settle_steps, patience=max_steps)


@lru_cache(maxsize=64)
def _sampler(max_steps: int | None, batch_size: int | None) -> SGHMC:
    if max_steps is None:
        return SGHMC(batch_size=batch_size)
    return SGHMC(num_warmup=max_steps // 2, spacing=max(1, max_steps // 200), batch_size=batch_size)
