"""Sequences of any lengths: as a table with gaps, and side by side for the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..data import Dataset, Scaling
from ..errors import InputError
from ..typing import Array, Bool, Float


class Sequences(eqx.Module):
    """J sequences in the model's units, filled up to the longest with rows that `observed` leaves out."""

    t: Float[Array, "J N"]
    y: Float[Array, "J N"]
    observed: Bool[Array, "J N"]

    @classmethod
    def of(cls, data: Dataset) -> Sequences:
        """From a table of times and of outputs with gaps, one output per sequence."""
        times, values = np.asarray(data.x[:, 0]), np.asarray(data.y)
        rows = [np.flatnonzero(~np.isnan(column)) for column in values.T]
        longest = max(map(len, rows))
        t = np.stack([np.pad(times[own], (0, longest - len(own)), mode="edge") for own in rows])
        y = np.stack([np.pad(values[own, j], (0, longest - len(own)), mode="edge") for j, own in enumerate(rows)])
        observed = np.stack([np.arange(longest) < len(own) for own in rows])
        return cls(jnp.asarray(t), jnp.asarray(y), jnp.asarray(observed))

    @property
    def num_sequences(self) -> int:
        """J."""
        return self.t.shape[0]

    def starts_and_ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last time of every sequence."""
        t = np.asarray(self.t)
        return t.min(axis=1), t.max(axis=1)

    def interpolated(self, z: np.ndarray) -> np.ndarray:
        """The values of sequence j at times z[j], linear between its rows."""
        rows = zip(np.asarray(self.t), np.asarray(self.y), np.asarray(self.observed), z, strict=True)
        return np.stack([np.interp(at, t[seen], y[seen]) for t, y, seen, at in rows])


def table_of(pairs: Sequence[Any]) -> Dataset:
    """Checked sequences (t, y), sorted by time, one below the other: an output for each, with gaps elsewhere."""
    checked = [_checked(index, *_pair(index, pair)) for index, pair in enumerate(pairs)]
    y = np.full((sum(len(t) for t, _ in checked), len(checked)), np.nan, checked[0][1].dtype)
    start = 0
    for index, (_, values) in enumerate(checked):
        y[start : start + len(values), index] = values
        start += len(values)
    return Dataset(jnp.asarray(np.concatenate([t for t, _ in checked]))[:, None], jnp.asarray(y))


def scaling_of(data: Dataset) -> Scaling:
    """Times between −1 and 1, and values with mean 0 and variance 1 over all sequences."""
    t, y = np.asarray(data.x), np.asarray(data.y)
    one_for_each = np.ones(y.shape[1], y.dtype)
    parts = (
        0.5 * (t.min(axis=0) + t.max(axis=0)),
        0.5 * np.ptp(t, axis=0),
        np.nanmean(y) * one_for_each,
        (np.nanstd(y) or 1.0) * one_for_each,
        np.zeros(1, bool),
    )
    return Scaling(*map(jnp.asarray, parts))


def _pair(index: int, pair: Any) -> tuple[Any, Any]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InputError(f"Every sequence is a pair (t, y); sequence {index} is {type(pair).__name__}.")
    return pair[0], pair[1]


def _checked(index: int, t: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    t, y = np.asarray(t), np.asarray(y)
    for name, array in (("t", t), ("y", y)):
        if not (np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)):
            raise InputError(f"Sequence {index}: {name} must hold numbers; got dtype {array.dtype}.")
    if t.ndim == 2 and t.shape[1] > 1:
        raise InputError(
            f"Sequence {index} has times of shape {t.shape}: a warp is over one input, so that t must have shape (N,) "
            "or (N, 1). For several inputs use deep_gp()."
        )
    t, y = t.reshape(-1), y.reshape(-1)
    if len(t) != len(y) or len(t) < 2:
        raise InputError(f"Sequence {index} needs as many times as values, two or more; got {len(t)} and {len(y)}.")
    dtype = np.result_type(t, y) if np.issubdtype(np.result_type(t, y), np.floating) else np.float64
    t, y = t.astype(dtype), y.astype(dtype)
    if not (np.all(np.isfinite(t)) and np.all(np.isfinite(y))):
        raise InputError(f"Sequence {index} has values that aren't finite: leave these rows out.")
    if np.ptp(t) == 0:
        raise InputError(f"Sequence {index} has one time only, {t[0]:g}: a warp needs two or more.")
    order = np.argsort(t, kind="stable")
    return t[order], y[order]
