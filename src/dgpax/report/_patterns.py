"""What is left in the residuals: do they depend on inputs, or on the ones before them?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from scipy.stats import norm, rankdata

from ._check import BAD, GOOD, Check
from ._text import shown

NOTABLE = 0.2
"""Rank correlations below which nothing is said, however many rows there are."""
MOST_INPUTS = 200
MOST_OUTPUTS = 4
MOST_ROWS = 20_000


class Order(NamedTuple):
    """The order in which residuals must not depend on the ones before them: by values, None for as they stand."""

    name: str
    values: np.ndarray | None


class _Found(NamedTuple):
    correlation: float
    words: str


def patterns(
    residuals: np.ndarray,
    inputs: Mapping[str, np.ndarray],
    order: Order,
    chance: float,
    word: str,
    *,
    numbers: bool = True,
) -> list[Check]:
    """Rank correlations of standardised residuals [N, P], and of their sizes, with every input and its distance from
    its middle, and of every residual with the one before it; the largest of both kinds.

    Residuals of labels (`numbers=False`) stay as they are: ranks of two values aren't 0 on average where their mean is.
    """
    checks = []
    kinds = {"residuals and inputs": _with_inputs(residuals, inputs, numbers),
             f"residuals and {order.name}": _with_the_last(residuals, order, numbers)}  # fmt: skip
    for what, found in kinds.items():
        each = list(found)
        if not each:
            continue
        edge = float(norm.isf(chance / (2 * len(each))) / np.sqrt(max(len(residuals) - 1, 1)))
        worst = max(each, key=lambda one: abs(one.correlation))
        bad = abs(worst.correlation) > max(edge, NOTABLE)
        text = f"{worst.words} (correlation {worst.correlation:+.2f})".replace("-", "−")
        checks.append(
            Check(what, text if bad else "nothing found", f"up to {min(edge, 1.0):.2f}", BAD if bad else GOOD, word)
        )
    return checks


def _with_inputs(residuals: np.ndarray, inputs: Mapping[str, np.ndarray], numbers: bool) -> Iterator[_Found]:
    thinned = slice(None, None, -(-len(residuals) // MOST_ROWS))
    for column in residuals[thinned].T[:MOST_OUTPUTS]:
        there = ~np.isnan(column)
        z = column[there]
        sides = {"values lie higher than said": z} | ({"surprises are larger": np.abs(z)} if numbers else {})
        ranked = {words: _ranked(side) if numbers else side - side.mean() for words, side in sides.items()}
        for name, values in list(inputs.items())[:MOST_INPUTS]:
            x = np.asarray(values, float)[thinned][there]
            if len(x) < 3 or np.ptp(x) == 0.0:
                continue
            middle = np.abs(x - np.median(x))
            for words, ranks in ranked.items():
                yield _Found(_correlation(ranks, _ranked(x)), f"{words} where {shown(name, 30)!r} is large")
                if len(np.unique(x)) > 2 and np.ptp(middle) > 0.0:
                    text = f"{words} where {shown(name, 30)!r} is far from its middle"
                    yield _Found(_correlation(ranks, _ranked(middle)), text)


def _with_the_last(residuals: np.ndarray, order: Order, numbers: bool) -> Iterator[_Found]:
    if order.values is not None:
        residuals = residuals[np.argsort(order.values, kind="stable")]
    for column in residuals.T[:MOST_OUTPUTS]:
        z = column[~np.isnan(column)]
        if len(z) > 3:
            z = _ranked(z) if numbers else z - z.mean()
            yield _Found(_correlation(z[1:], z[:-1]), "residuals follow each other")


def _ranked(values: np.ndarray) -> np.ndarray:
    ranks = rankdata(values)
    return ranks - ranks.mean()


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    size = float(np.sqrt(np.sum(a**2) * np.sum(b**2)))
    return float(np.sum(a * b)) / size if size > 0.0 else 0.0
