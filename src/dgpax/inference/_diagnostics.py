"""How well Markov chains have mixed: effective sample size and R̂."""

from __future__ import annotations

import numpy as np

LEAST_STEPS = 4


def split_r_hat(draws: np.ndarray) -> float:
    """√(((n − 1)W/n + B/n)/W) of chains [steps, S], each cut in two [Gelman et al. 2013, eqs. 11.3, 11.4].

    NaN for fewer than four steps, or if no chain moved.
    """
    if draws.shape[0] < LEAST_STEPS:
        return float("nan")
    halves = _halves(draws)
    n = halves.shape[0]
    within = float(np.mean(np.var(halves, axis=0, ddof=1)))
    between = n * float(np.var(np.mean(halves, axis=0), ddof=1))
    return float(np.sqrt(((n - 1) * within + between) / (n * within))) if within > 0 else float("nan")


def effective_sample_size(draws: np.ndarray) -> float:
    """Independent draws that tell as much about the mean as these [steps, S], all chains together.

    Autocorrelations that compare chains with each other [Gelman et al. 2013, eq. 11.7], summed up to where the sum of a
    pair turns negative, pairs made to decrease [Geyer 1992]. NaN for fewer than four steps, or if no chain moved.
    """
    if draws.shape[0] < LEAST_STEPS:
        return float("nan")
    halves = _halves(draws)
    n, chains = halves.shape
    within = float(np.mean(np.var(halves, axis=0, ddof=1)))
    if within == 0:
        return float("nan")
    total = (n - 1) / n * within + float(np.var(np.mean(halves, axis=0), ddof=1))
    correlations = 1.0 - (within - np.mean(_autocovariances(halves), axis=1)) / total
    correlations[0] = 1.0
    pairs = correlations[: n - n % 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    kept = np.minimum.accumulate(pairs[: negative[0] if len(negative) else None])
    return float(n * chains / max(2.0 * float(np.sum(kept)) - 1.0, 1.0 / np.log10(n * chains)))


def _halves(draws: np.ndarray) -> np.ndarray:
    half = draws.shape[0] // 2
    return np.concatenate([draws[:half], draws[draws.shape[0] - half :]], axis=1)


def _autocovariances(chains: np.ndarray) -> np.ndarray:
    n = chains.shape[0]
    centred = chains - np.mean(chains, axis=0)
    spectrum = np.fft.rfft(centred, 2 * n, axis=0)
    return np.fft.irfft(np.abs(spectrum) ** 2, 2 * n, axis=0)[:n] / n
