"""Training as planned."""

from __future__ import annotations

import time

from ..data import InMemory
from ..errors import InputError
from ..fits import AbstractFit, Ensemble, Fit
from ..inference import Variational, fit
from ._recipe import Recipe
from ._rows import Rows
from ._ways import Plan, plan, settling, takes_natural_steps
from ._weigh import weigh, worth_weighing

BATCH_ROWS = 1000
"""Rows per step where there are more and nothing else is said."""
MORE_STEPS = 300
"""Of one call of `train_more`."""


def train(recipe: Recipe, rows: Rows) -> AbstractFit:
    """A fit of these rows. `max_time` counts from here."""
    started = time.perf_counter()
    if worth_weighing(recipe, rows):
        return weigh(recipe, rows, lambda: _seconds_left(recipe, started))
    return carry_out(recipe, plan(recipe, rows), started)


def train_more(recipe: Recipe, fitted: AbstractFit, rows: Rows, num_seen: float) -> AbstractFit:
    """Further steps on these rows, which stand for all that were seen; of several depths the deepest goes on."""
    started = time.perf_counter()
    if isinstance(fitted, Ensemble):
        fitted = fitted.members[-1]
    if recipe.inference != "variational" or not isinstance(fitted, Fit):
        raise InputError(f'partial_fit is for inference="variational"; this is "{recipe.inference}". Use fit.')
    merged = rows.merged()
    data = merged._replace(weights=merged.counts * (num_seen / merged.counts.sum())).padded()
    engine = settling(takes_natural_steps(recipe), recipe.max_steps or MORE_STEPS)
    return carry_out(recipe, Plan(fitted.model, data, Variational(fitted.posterior), engine), started)


def carry_out(recipe: Recipe, planned: Plan, started: float) -> AbstractFit:
    """The fit that a plan leads to, in the time that is left."""
    model, data, method, engine = planned
    left = _seconds_left(recipe, started)
    feed = data if method.needs_all_rows else InMemory(data, recipe.batch_size or BATCH_ROWS)
    return fit(model, feed, method, engine=engine, seed=recipe.seed, max_seconds=left, progress=recipe.progress)


def _seconds_left(recipe: Recipe, started: float) -> float | None:
    return None if recipe.max_time is None else max(0.0, recipe.max_time - (time.perf_counter() - started))
