"""Model, method and engine for every word of inference."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import equinox as eqx

from ..architectures import deep_gp, gp_regression, sparse_gp_regression
from ..data import Dataset
from ..errors import InputError
from ..inducing import distinct_rows
from ..inference import (
    LBFGS,
    SGHMC,
    AbstractEngine,
    AbstractMethod,
    Exact,
    Gradient,
    Sampling,
    Settling,
    Sparse,
    Variational,
)
from ..model import DeepGP
from ..posteriors import posterior_at_prior
from ..stride import Schedule, Stride
from ._inducing import LAST, suitable_counts, with_inducing
from ._observations import observation
from ._recipe import ARCHITECTURES, Recipe
from ._rows import Rows
from ._shape import shaped

LEAST_STEPS, STEPS_PER_ROW, MOST_STEPS = 500, 4, 2000
ADAM_STEPS = 5000
STRIDE_STEPS = 4000
NUM_PARTICLES = 50


class Plan(NamedTuple):
    """What `fit` takes."""

    model: Any
    data: Dataset
    method: AbstractMethod
    engine: AbstractEngine


def plan(recipe: Recipe, rows: Rows) -> Plan:
    """What the words come to for these rows."""
    return WAYS[recipe.inference](recipe, rows)


def _variational(recipe: Recipe, rows: Rows) -> Plan:
    model, data = deep_model(recipe, rows, coupled=recipe.posterior != "mean-field")
    natural = takes_natural_steps(recipe)
    steps = natural_steps(data.num_rows) if natural else ADAM_STEPS
    engine = settling(natural, recipe.max_steps or steps)
    return Plan(model, data, Variational(posterior_at_prior(recipe.posterior, model.layers)), engine)


def _sghmc(recipe: Recipe, rows: Rows) -> Plan:
    model, data = deep_model(recipe, rows, coupled=False)
    return Plan(model, data, Sampling(), _sampler(recipe.max_steps))


def _exact(recipe: Recipe, rows: Rows) -> Plan:
    data = _gaussian_data(recipe, rows)
    model = shaped(gp_regression(data, gaps=rows.gaps), recipe.kernel, rows)
    return Plan(model, data, Exact(), _lbfgs(recipe))


def _sparse(recipe: Recipe, rows: Rows) -> Plan:
    data = _gaussian_data(recipe, rows)
    num_inducing = min(recipe.num_inducing or LAST, data.num_rows)
    model = shaped(sparse_gp_regression(data, num_inducing, seed=recipe.seed), recipe.kernel, rows)
    return Plan(model, data, Sparse(), _lbfgs(recipe))


def _stride(recipe: Recipe, rows: Rows) -> Plan:
    data = _gaussian_data(recipe, rows)
    schedule = Schedule(num_steps=max(1, (recipe.max_steps or STRIDE_STEPS) // Schedule.num_iterations))
    num_inducing = min(recipe.num_inducing or LAST, len(distinct_rows(data.x)))
    method = Stride(num_inducing, recipe.num_particles or NUM_PARTICLES, schedule=schedule)
    architecture = ARCHITECTURES[recipe.architecture](num_hidden=recipe.depth - 1)
    return Plan(architecture, data, method, method.default_engine())


WAYS: dict[str, Callable[[Recipe, Rows], Plan]] = {
    "variational": _variational,
    "sghmc": _sghmc,
    "stride": _stride,
    "exact": _exact,
    "sparse": _sparse,
}


def natural_steps(num_rows: int) -> int:
    """Enough of them, as far as is known before the objective is flat."""
    return min(max(LEAST_STEPS, STEPS_PER_ROW * num_rows), MOST_STEPS)


def takes_natural_steps(recipe: Recipe) -> bool:
    """Whether natural gradients suit the posterior."""
    return recipe.posterior != "points-as-locations"


@lru_cache(maxsize=64)
def settling(natural: bool, max_steps: int) -> Settling:
    """Cached, as an engine that is made anew has an optimiser of its own, and a program compiled for it."""
    settle_steps = max(1, min(200, max_steps // 3))
    if natural:
        return Settling(max_steps=max_steps, settle_steps=settle_steps)
    engine = Gradient()  # too slow and noisy to tell when it is flat
    return Settling(engine=engine, max_steps=max_steps, settle_steps=settle_steps, patience=max_steps)


@lru_cache(maxsize=64)
def _sampler(max_steps: int | None) -> SGHMC:
    if max_steps is None:
        return SGHMC()
    return SGHMC(num_warmup=max_steps // 2, spacing=max(1, max_steps // 200))


def _lbfgs(recipe: Recipe) -> LBFGS:
    return LBFGS() if recipe.max_steps is None else LBFGS(max_steps=recipe.max_steps)


def _gaussian_data(recipe: Recipe, rows: Rows) -> Dataset:
    """For inference that is for Gaussian noise and knows no weights."""
    if rows.num_classes or recipe.likelihood not in (None, "gaussian"):
        what = "labels" if rows.num_classes else f"likelihood={recipe.likelihood!r}"
        raise InputError(
            f'inference="{recipe.inference}" is for Gaussian noise; got {what}. Use inference="variational" or "sghmc".'
        )
    return rows.repeated(recipe.inference)


def deep_model(recipe: Recipe, rows: Rows, coupled: bool, most_in_last: int = LAST) -> tuple[DeepGP, Dataset]:
    """A model with the layers that the words ask for, and its rows in their standard form."""
    observed = observation(recipe.likelihood, rows)
    merged = rows.merged()
    data = merged.padded()
    model = deep_gp(data, recipe.depth, 1, likelihood=observed.likelihood, seed=recipe.seed)
    if observed.mean is not None:
        model = eqx.tree_at(lambda m: m.layers[-1].mean, model, observed.mean)
    model = shaped(model, recipe.kernel, rows)
    counts = suitable_counts(len(merged.x), recipe.num_inducing, coupled, most_in_last)
    return with_inducing(model, model.to_model_units(data).counted().x, counts, recipe.seed), data
