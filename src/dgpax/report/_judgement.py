"""Rows judged by fits that hadn't seen them, in one go or fold by fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..data import Dataset
from ..fits import AbstractFit, FitReport
from ..metrics import error_of_ranks, mae, rmse, smse
from ._judge import Classification, Regression, judge, judge_probabilities

UNSEEN = "They weren't used for training."


class Judgement(NamedTuple):
    """What fits say about rows that they hadn't seen.

    `how` says how that came about; `lines` are those of the file, `names` a column that names the rows (its name and
    its cells), and `times` when the rows are; () and None where there are none.
    """

    scored: Regression | Classification
    data: Dataset
    reports: tuple[FitReport, ...]
    how: str = UNSEEN
    lines: tuple[int, ...] = ()
    names: tuple[str, tuple[str, ...]] | None = None
    times: np.ndarray | None = None

    @property
    def unfinished(self) -> FitReport | None:
        """The report of a fit that its limits ended, if there is one."""
        return next((report for report in self.reports if report.unfinished), None)


def judgement(fitted: AbstractFit, test: Dataset, *, level: float = 0.9, seed: int = 0) -> Judgement:
    """What a fit says about rows that it hadn't seen."""
    return Judgement(judge(fitted, test, level, seed), test, (fitted.report,))


def pooled(parts: Sequence[Judgement], order: np.ndarray, data: Dataset) -> Judgement:
    """The rows of several folds as one: of all of them, one after the other, those at `order`, which are `data`."""
    scored = [part.scored for part in parts]
    classes = [one for one in scored if isinstance(one, Classification)]
    numbers = [one for one in scored if isinstance(one, Regression)]
    together = _pooled_labels(classes, order) if classes else _pooled_numbers(numbers, order)
    return Judgement(together, data, tuple(report for part in parts for report in part.reports))


def _pooled_labels(parts: list[Classification], order: np.ndarray) -> Classification:
    labels, p = (np.concatenate(each) for each in zip(*((one.labels, one.probabilities) for one in parts), strict=True))
    return judge_probabilities(labels[order].astype(float), p[order])


def _pooled_numbers(parts: list[Regression], order: np.ndarray) -> Regression:
    """Scores of means and ranks anew, the others as averages over targets."""

    def rows(arrays: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate(arrays)[order]

    observed, mean, stddev, ranks = (
        rows([getattr(one, name) for one in parts]) for name in ("observed", "mean", "stddev", "ranks")
    )
    first, counts = parts[0], np.array([float(np.sum(~np.isnan(one.observed))) for one in parts])
    intervals = {
        level: (rows([one.intervals[level][0] for one in parts]), rows([one.intervals[level][1] for one in parts]))
        for level in first.intervals
    }
    covered = {level: _average([one.covered[level] for one in parts], counts) for level in first.covered}
    errors = {name: _average([one.errors[name] for one in parts], counts) for name in first.errors}
    errors |= {score.__name__: float(score(observed, mean)) for score in (rmse, mae, smse)}
    errors["calibration_error"] = float(error_of_ranks(jnp.asarray(ranks)))
    return Regression(observed, mean, stddev, ranks, intervals, covered, first.level, errors, first.note)


def _average(values: Sequence[float], counts: np.ndarray) -> float:
    return float(np.average(values, weights=counts))
