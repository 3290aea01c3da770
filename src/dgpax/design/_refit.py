"""The fit of a study's runs, from where the last one ended."""

from __future__ import annotations

import numpy as np

from ..fits import AbstractFit, Fit
from ..inference import Exact, Sparse, Variational, fit
from ..parameters import find, set_values
from ..recipes import Plan, Recipe, Rows, plan, settling, takes_natural_steps, train
from ._memory import Trained

ANEW_AFTER = 1.3
"""Times as many runs: scaling and inducing points are then those of the runs there are."""
WARM_STEPS = 150


def refitted(recipe: Recipe, x: np.ndarray, y: np.ndarray, last: Trained | None) -> Trained:
    """A fit of these runs. It goes on from the last one, which takes a fraction of the time, as long as there are not
    many more runs; then it begins anew."""
    rows, num_runs = Rows(x, y), len(x)
    if last is None or num_runs >= ANEW_AFTER * last.num_runs_anew or not isinstance(last.fit, Fit):
        return Trained(train(recipe, rows), num_runs, num_runs)
    return Trained(_warm(recipe, rows, last.fit), num_runs, last.num_runs_anew)


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
