"""One layer and more, weighed against each other by rows that their fits hadn't seen."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..architectures import gp_regression
from ..data import Dataset
from ..errors import NumericalError
from ..fits import AbstractFit, Ensemble, Fit, FitReport
from ..inference import Exact, Variational, fit, fit_many
from ..metrics import stacking_weights
from ..posteriors import posterior_at_prior
from ..prediction import leave_folds_out, log_density
from ._recipe import Recipe
from ._rows import Rows
from ._shape import shaped
from ._starts import NOISE, starts
from ._ways import deep_model, natural_steps, settling

AVERAGED_UP_TO = 300
"""Rows that leave hyperparameters so uncertain that it shows."""
EXACT_UP_TO = 1000
FEWEST_ROWS = 8
FOLDS = 4
"""As many as starts, so that these and the folds are one compiled program."""
RACE_STEPS = 150
"""With the noise held, and as many after that."""
LEAST_WEIGHT = 0.02
UNKNOWN = -1e6
"""In place of a log density that isn't finite."""
NUM_SAMPLES = 50


class Candidate(NamedTuple):
    """A fit, log densities of the rows by fits that hadn't seen them (None: there was no time for these), its evidence
    or bound, and its seconds."""

    name: str
    fitted: AbstractFit
    densities: np.ndarray | None
    bound: float
    seconds: float


def worth_weighing(recipe: Recipe, rows: Rows) -> bool:
    """Whether the depth is left open, and one layer is exact and quick."""
    open_depth = recipe.inference == "variational" and recipe.num_layers is None and recipe.posterior == "mean-field"
    gaussian = recipe.likelihood in (None, "gaussian") and not rows.num_classes and not rows.has_many_gaps
    whole = bool(np.all(rows.counts == np.round(rows.counts))) and not np.any(np.isnan(rows.y))
    return open_depth and gaussian and whole and FEWEST_ROWS <= float(rows.counts.sum()) <= EXACT_UP_TO


def weigh(recipe: Recipe, rows: Rows, left: Callable[[], float | None]) -> Ensemble:
    """Both as one fit, in proportion to what they are worth [Yao et al. 2018]; one layer alone where two can't be
    trained, or not in time."""
    began = time.perf_counter()
    merged = rows.merged()
    folds = np.random.default_rng(recipe.seed).permutation(len(merged.x)) % FOLDS
    one = _one_layer(recipe, merged, folds, left())
    if left() == 0:
        return _alone(one, "There was no time for two layers.")
    try:
        two = _two_layers(recipe, merged, folds, one, left)
    except NumericalError as error:
        return _alone(one, f"Two layers couldn't be trained: {error}")
    weights = _weights(one, two)
    report = _report([one, two], weights, time.perf_counter() - began)
    return Ensemble([one.fitted, two.fitted], weights, report)


def _alone(one: Candidate, note: str) -> Ensemble:
    report = one.fitted.report
    return Ensemble([one.fitted], [1.0], dataclasses.replace(report, notes=(*report.notes, note)))


def _weights(one: Candidate, two: Candidate) -> np.ndarray:
    """By densities, or all to the higher bound where these are missing."""
    if one.densities is None or two.densities is None:
        return np.where([one.bound >= two.bound, one.bound < two.bound], 1.0, 0.0)
    densities = np.stack([one.densities, two.densities])
    weights = stacking_weights(np.where(np.isfinite(densities), densities, UNKNOWN))
    weights = np.where(weights < LEAST_WEIGHT, 0.0, weights)
    return weights / weights.sum()


def _one_layer(recipe: Recipe, rows: Rows, folds: np.ndarray, seconds: float | None) -> Candidate:
    began = time.perf_counter()
    data = rows.repeated("exact")
    method = Exact(hyperparameters="averaged" if data.num_rows <= AVERAGED_UP_TO else "point")
    model = shaped(gp_regression(data, gaps=rows.gaps), recipe.kernel, rows)
    fitted = fit(model, data, method, max_seconds=seconds, progress=recipe.progress)
    counts = rows.counts.astype(int)
    densities = leave_folds_out(fitted, np.repeat(folds, counts))[np.cumsum(counts) - 1]
    return Candidate("one layer, exact", fitted, densities, fitted.report.objective_end, time.perf_counter() - began)


def _two_layers(
    recipe: Recipe, rows: Rows, folds: np.ndarray, one: Candidate, left: Callable[[], float | None]
) -> Candidate:
    """The start that is ahead after a short race, trained to its end.

    What it says of a fold's rows is said after as many steps without these as lead from a start to where the race ends:
    hyperparameters have seen them, as they have in `leave_folds_out`.
    """
    began = time.perf_counter()
    model, data = deep_model(recipe, rows, coupled=False)
    steps = recipe.max_steps or natural_steps(data.num_rows)
    race = settling(True, min(RACE_STEPS, steps))
    method = Variational(posterior_at_prior(recipe.posterior, model.layers), hold_first=(f"*.{NOISE}",))
    begun = starts(model, one.fitted)
    fits = fit_many(begun, [data] * len(begun), method, engine=race, max_seconds=left(), progress=recipe.progress)
    ahead = fits[int(np.argmax([_bound(fitted) for fitted in fits]))]
    fitted = fit(
        ahead.model, data, Variational(ahead.posterior), engine=settling(True, steps), seed=recipe.seed,
        max_seconds=left(), progress=recipe.progress,
    )  # fmt: skip
    bound = _bound(fitted)
    if left() == 0:
        return Candidate("two layers", fitted, None, bound, time.perf_counter() - began)
    densities = np.zeros(len(rows.x))
    without = fit_many(
        [fitted.model] * FOLDS, [_without(data, folds == number) for number in range(FOLDS)],
        [dataclasses.replace(method, posterior=fitted.posterior)] * FOLDS, engine=race, max_seconds=left(),
        progress=recipe.progress,
    )  # fmt: skip
    for number, other in enumerate(without):
        held_out = Dataset(jnp.asarray(rows.x[folds == number]), jnp.asarray(rows.y[folds == number]))
        densities[folds == number] = log_density(other, held_out, num_samples=NUM_SAMPLES)
    return Candidate("two layers", fitted, densities, bound, time.perf_counter() - began)


def _without(data: Dataset, held_out: np.ndarray) -> Dataset:
    assert data.weights is not None  # noqa: S101 - padded data have weights
    weights = np.array(data.weights)
    weights[: len(held_out)][held_out] = 0.0
    return dataclasses.replace(data, weights=jnp.asarray(weights))


def _bound(fitted: Fit) -> float:
    """Of the last steps, which are draws of it."""
    return float(np.mean(fitted.report.history[-50:]))


def _report(candidates: list[Candidate], weights: np.ndarray, seconds: float) -> FitReport:
    """That of the heaviest, with a line about each."""
    heaviest = candidates[int(np.argmax(weights))]
    lines = {candidate.name: _line(candidate, weight) for candidate, weight in zip(candidates, weights, strict=True)}
    notes = heaviest.fitted.report.notes
    if candidates[1].bound < candidates[0].bound or weights[1] == 0.0:
        notes = (*notes, "Depth doesn't pay on these rows: one layer explains them as well or better.")
    return dataclasses.replace(
        heaviest.fitted.report, seconds=seconds, notes=notes, details=heaviest.fitted.report.details | lines
    )


def _line(candidate: Candidate, weight: float) -> str:
    densities = candidate.densities
    held_out = "not held out in time" if densities is None else f"held-out log density {np.mean(densities):.3f} a row"
    return f"weight {weight:.2f}, {held_out}, bound {candidate.bound:.1f}, {candidate.seconds:.1f} s"
