"""Held-out rows judged by draws, for likelihoods whose predictive distribution has no formula."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..fits import AbstractFit
from ..prediction import sample_observations

NUM_DRAWS = 1000
CHUNK_ENTRIES = 5_000


class Judged(NamedTuple):
    """Of every target [N, P]: its rank among draws of it and its CRPS, NaN if it is missing; and quantiles of the
    draws, [K, N, P]."""

    ranks: np.ndarray
    crps: np.ndarray
    quantiles: np.ndarray


def judge_by_draws(fitted: AbstractFit, x: np.ndarray, y: np.ndarray, levels: np.ndarray, seed: int) -> Judged:
    """Chunk by chunk of rows, as there are many draws of each."""
    rng, parts = np.random.default_rng(seed), []
    num_rows = max(1, CHUNK_ENTRIES // y.shape[1])
    for index, start in enumerate(range(0, len(y), num_rows)):
        rows = slice(start, start + num_rows)
        draws = np.asarray(sample_observations(fitted, x[rows], num_samples=NUM_DRAWS, seed=seed + index))
        v = rng.uniform(size=y[rows].shape)
        quantiles = np.quantile(draws, levels, axis=0, method="inverted_cdf")
        parts.append(Judged(randomised_ranks(y[rows], draws, v), crps_of_draws(y[rows], draws), quantiles))
    ranks, crps, quantiles = zip(*parts, strict=True)
    return Judged(np.concatenate(ranks), np.concatenate(crps), np.concatenate(quantiles, axis=1))


def randomised_ranks(y: np.ndarray, draws: np.ndarray, v: np.ndarray) -> np.ndarray:
    """F(y⁻) + v (F(y) − F(y⁻)) with v uniform: uniform itself if y comes from the same distribution as the draws
    [S, N, P], be it continuous or discrete   [Czado, Gneiting & Held 2009, section 2.1, on the randomised PIT].

    F counts the target among the draws, (#{draws ≤ y} + 1)/(S + 1), so that this is exact for any number of them.
    """
    below, equal = np.sum(draws < y, axis=0), np.sum(draws == y, axis=0)
    return np.where(np.isnan(y), np.nan, (below + v * (equal + 1)) / (len(draws) + 1))


def crps_of_draws(y: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """E|Y − y| − ½ E|Y − Y′| over draws [S, N, P]   [Gneiting & Raftery 2007, eq. (21)].

    Over pairs of different draws, Σ_ij |Y_i − Y_j| = 2 Σ_i (2i − S − 1) Y_(i) for draws in order: without bias.
    """
    num_draws = len(draws)
    weights = (2.0 * np.arange(1, num_draws + 1) - num_draws - 1) / (num_draws * (num_draws - 1))
    return np.mean(np.abs(draws - y), axis=0) - np.tensordot(weights, np.sort(draws, axis=0), 1)
