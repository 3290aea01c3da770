"""Where to look first: between the runs there are, and evenly over the box."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.spatial import Delaunay, QhullError
from scipy.stats import qmc

from ..typing import Float
from ._space import Space

TRIANGULATED_UP_TO = 5
"""Dimensions: the number of simplices grows with them like a factorial."""
TRIANGULATED_ROWS = 1000
NEAR = 1e-6
"""Two points of the unit cube closer than this in every dimension are one."""


def candidates(
    space: Space, observed: Float[np.ndarray, "R D"], count: int, rng: np.random.Generator
) -> Float[np.ndarray, "C D"]:
    """At least `count` points of the unit cube: all there are, or else half of them from a triangulation of the runs
    [Gramacy, Sauer & Wycoff 2022] and the rest a scrambled Sobol' sequence. They come without those that were run, so
    that there may be none left."""
    if space.size <= count:
        return new_ones(space.all(), observed)
    between = space.snapped(triangulated(observed, rng))
    between = new_ones(_distinct(between), observed)
    between = between[rng.permutation(len(between))[: count // 2]]
    found = new_ones(_distinct(np.concatenate([between, evenly_spread(space, count, rng)])), observed)
    return new_ones(space.all(), observed) if len(found) == 0 and np.isfinite(space.size) else found


def evenly_spread(space: Space, count: int, rng: np.random.Generator) -> Float[np.ndarray, "C D"]:
    """At least `count` points of a scrambled Sobol' sequence, or all of a smaller box, each once."""
    if space.size <= count:
        return rng.permutation(space.all())
    return _distinct(space.snapped(qmc.Sobol(len(space.names), rng=rng).random(1 << (count - 1).bit_length())))


def triangulated(points: Float[np.ndarray, "R D"], rng: np.random.Generator) -> Float[np.ndarray, "T D"]:
    """The middles of the simplices between points of the unit cube, and points half way from the outer ones to its
    walls; none where there are too few points or too many dimensions."""
    R, D = points.shape
    nothing = np.zeros((0, D))
    if D > TRIANGULATED_UP_TO or D + 2 > R:
        return nothing
    points = points[rng.permutation(R)[:TRIANGULATED_ROWS]]
    if D == 1:
        inner = np.sort(points[:, 0])
        return np.concatenate([0.5 * (inner[1:] + inner[:-1]), [0.5 * inner[0], 0.5 * (1.0 + inner[-1])]])[:, None]
    try:
        mesh = Delaunay(points)
    except QhullError:  # all points in a plane
        return nothing
    middles = points[mesh.simplices].mean(axis=1)
    facets = points[mesh.convex_hull]
    outer = facets.mean(axis=1)
    away = outer - points.mean(axis=0)
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(away > 0, (1.0 - outer) / away, np.where(away < 0, -outer / away, np.inf))
    reach = np.maximum(np.min(steps, axis=1), 0.0)
    return np.concatenate([middles, outer + 0.5 * np.where(np.isfinite(reach), reach, 0.0)[:, None] * away])


def new_ones(points: Float[np.ndarray, "N D"], observed: Float[np.ndarray, "R D"]) -> Float[np.ndarray, "C D"]:
    """Without those that were run already."""
    return points[is_new(points, observed)] if len(observed) and len(points) else points


def is_new(points: Float[np.ndarray, "N D"], observed: Float[np.ndarray, "R D"]) -> np.ndarray:
    """Which points aren't next to one that was run."""
    return np.min(np.max(np.abs(points[:, None] - observed), axis=-1), axis=1) > NEAR


def _distinct(points: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "C D"]:
    """Each once, in their order."""
    return points[np.sort(np.unique(points, axis=0, return_index=True)[1])] if len(points) else points
