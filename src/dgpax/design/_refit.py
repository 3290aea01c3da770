"""The fit of a study's runs, from where the last one ended."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..fits import AbstractFit, Fit
from ..inference import Exact, Sparse, Variational, fit
from ..parameters import find, set_values
from ..recipes import NOISE, Plan, Recipe, Rows, natural_steps, plan, settling, takes_natural_steps, train
from ._memory import Trained

LITTLE = 0.001
"""Noise variance, in those of the values."""
ANEW_AFTER = 1.3
"""Times as many runs: scaling and inducing points are then those of the runs there are."""
WARM_STEPS = 150


def refitted(recipe: Recipe, x: np.ndarray, y: np.ndarray, last: Trained | None) -> Trained:
    """A fit of these runs. It goes on from the last one, which takes a fraction of the time, as long as there are not
    many more runs; then it begins anew."""
    rows, num_runs = Rows(x, y), len(x)
    if last is None or num_runs >= ANEW_AFTER * last.num_runs_anew or not isinstance(last.fit, Fit):
        return Trained(_anew(recipe, rows), num_runs, num_runs)
    return Trained(_warm(recipe, rows, last.fit), num_runs, last.num_runs_anew)


def _anew(recipe: Recipe, rows: Rows) -> AbstractFit:
    """Simulators have little noise or none: a deep model of Gaussian noise holds it small in the first half of its
    steps, so that layers bend to explain the runs, and learns it in the second."""
    if recipe.inference != "variational" or recipe.num_layers is None:
        return train(recipe, rows)
    own = plan(recipe, rows)
    if NOISE not in find(own.model):
        return _fitted(recipe, own)
    steps = recipe.max_steps or natural_steps(len(rows.x))
    return _fitted(
        recipe,
        own._replace(
            model=set_values(own.model, {NOISE: LITTLE}),
            method=dataclasses.replace(own.method, hold_first=(f"*.{NOISE}",)),
            engine=settling(takes_natural_steps(recipe), None, max(1, steps // 2)),
        ),
    )


def _warm(recipe: Recipe, rows: Rows, last: Fit) -> AbstractFit:
    if recipe.inference == "variational":
        data = rows.merged().padded()
        engine = settling(takes_natural_steps(recipe), None, min(WARM_STEPS, recipe.max_steps or WARM_STEPS))
        return _fitted(recipe, Plan(last.model, data, Variational(last.posterior), engine))
    own = plan(recipe, rows)
    if isinstance(own.method, Exact | Sparse):
        known = {name: parameter.value for name, parameter in find(last.model).items() if "inducing" not in name}
        own = own._replace(model=set_values(own.model, known))
    return _fitted(recipe, own)


def _fitted(recipe: Recipe, planned: Plan) -> AbstractFit:
    return fit(
        planned.model, planned.data, planned.method, engine=planned.engine, seed=recipe.seed,
        max_seconds=recipe.max_time, progress=recipe.progress,
    )  # fmt: skip
