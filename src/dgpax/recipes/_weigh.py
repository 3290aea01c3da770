"""One layer, smooth or rough, and two, weighed against each other by rows that their fits hadn't seen."""

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
from ..inference import Exact, Settling, Variational, fit, fit_many
from ..metrics import stacking_weights
from ..model import DeepGP
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
ONE_LAYER_KERNELS = ("rbf", "matern52")
FEWEST_ROWS = 8
FOLDS = 4
AT_ONCE = 2
"""Fits side by side: starts, those that are ahead, and folds are few compiled programs."""
FIRST_STEPS = 150
"""With the noise held, and as many after that."""
TWO_LAYERS = "two layers"
MOST_STEPS, MOST_INDUCING = 1000, 128
"""Of those that go on: so that all together take no longer than a few fits."""
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
    """All of them as one fit, in proportion to what they are worth [Yao et al. 2018]; without two layers where these
    can't be trained, or not in time."""
    began = time.perf_counter()
    merged, candidates, note = rows.merged(), [], "There was no time for two layers."
    folds = np.random.default_rng(recipe.seed).permutation(len(merged.x)) % FOLDS
    for kernel in ONE_LAYER_KERNELS if recipe.kernel is None else (recipe.kernel,):
        if not candidates or left() != 0:
            candidates.append(_one_layer(dataclasses.replace(recipe, kernel=kernel), merged, folds, left()))
    if left() != 0:
        try:
            candidates.append(_two_layers(recipe, merged, folds, candidates[0], left))
            note = _note(candidates)
        except NumericalError as error:
            note = f"Two layers couldn't be trained: {error}"
    weights = _weights(candidates)
    report = _report(candidates, weights, note, time.perf_counter() - began)
    return Ensemble([candidate.fitted for candidate in candidates], weights, report)


def _weights(candidates: list[Candidate]) -> np.ndarray:
    """By densities, or all to the highest bound where these are missing."""
    known = [candidate.densities for candidate in candidates if candidate.densities is not None]
    if len(known) < len(candidates):
        return np.eye(len(candidates))[np.argmax([candidate.bound for candidate in candidates])]
    densities = np.stack(known)
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
    name = f"one layer, {recipe.kernel}, exact"
    return Candidate(name, fitted, densities, fitted.report.objective_end, time.perf_counter() - began)


def _two_layers(
    recipe: Recipe, rows: Rows, folds: np.ndarray, one: Candidate, left: Callable[[], float | None]
) -> Candidate:
    """The start that ends highest, of those that are ahead after some steps: with few rows two go on, as a first look
    can't tell them apart.

    What it says of a fold's rows is said after further steps without these: hyperparameters have seen them, as they
    have in `leave_folds_out`.
    """
    began = time.perf_counter()
    model, data = deep_model(recipe, rows, coupled=False, most_in_last=MOST_INDUCING)
    steps = recipe.max_steps or min(natural_steps(data.num_rows), MOST_STEPS)
    first, last = settling(True, min(FIRST_STEPS, steps)), settling(True, steps)
    patient = Variational(posterior_at_prior(recipe.posterior, model.layers), hold_first=(f"*.{NOISE}",))

    def trained(begun: list[tuple[DeepGP, Dataset, Variational]], engine: Settling) -> list[Fit]:
        groups = [tuple(zip(*begun[at : at + AT_ONCE], strict=True)) for at in range(0, len(begun), AT_ONCE)]
        fits = (fit_many(*group, engine=engine, max_seconds=left(), progress=recipe.progress) for group in groups)
        return [fitted for group in fits for fitted in group]

    fits = trained([(start, data, patient) for start in starts(model, one.fitted)], first)
    ahead = sorted(fits, key=_bound)[-AT_ONCE if len(rows.x) <= AVERAGED_UP_TO else -1 :]
    fitted = max(trained([(fit.model, data, Variational(fit.posterior)) for fit in ahead], last), key=_bound)
    if left() == 0:
        return Candidate(TWO_LAYERS, fitted, None, _bound(fitted), time.perf_counter() - began)
    densities, again = np.zeros(len(rows.x)), Variational(fitted.posterior)
    within = [(fitted.model, _without(data, folds == number), again) for number in range(FOLDS)]
    for number, other in enumerate(trained(within, first)):
        held_out = Dataset(jnp.asarray(rows.x[folds == number]), jnp.asarray(rows.y[folds == number]))
        densities[folds == number] = log_density(other, held_out, num_samples=NUM_SAMPLES)
    return Candidate(TWO_LAYERS, fitted, densities, _bound(fitted), time.perf_counter() - began)


def _without(data: Dataset, held_out: np.ndarray) -> Dataset:
    assert data.weights is not None  # noqa: S101 - padded data have weights
    weights = np.array(data.weights)
    weights[: len(held_out)][held_out] = 0.0
    return dataclasses.replace(data, weights=jnp.asarray(weights))


def _bound(fitted: Fit) -> float:
    """Of the last steps, which are draws of it."""
    return float(np.mean(fitted.report.history[-50:]))


def _note(candidates: list[Candidate]) -> str | None:
    """What is to be said of depth where it doesn't pay."""
    *shallow, deep = candidates
    if deep.bound >= max(candidate.bound for candidate in shallow) and _weights(candidates)[-1] > 0.0:
        return None
    return "Depth doesn't pay on these rows: one layer explains them as well or better."


def _report(candidates: list[Candidate], weights: np.ndarray, note: str | None, seconds: float) -> FitReport:
    """That of the heaviest, with a line about each."""
    own = candidates[int(np.argmax(weights))].fitted.report
    lines = {candidate.name: _line(candidate, weight) for candidate, weight in zip(candidates, weights, strict=True)}
    notes = own.notes if note is None else (*own.notes, note)
    return dataclasses.replace(own, seconds=seconds, notes=notes, details=own.details | lines)


def _line(candidate: Candidate, weight: float) -> str:
    densities = candidate.densities
    held_out = "not held out in time" if densities is None else f"held-out log density {np.mean(densities):.3f} a row"
    return f"weight {weight:.2f}, {held_out}, bound {candidate.bound:.1f}, {candidate.seconds:.1f} s"
