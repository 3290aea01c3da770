"""Sequences of any lengths, side by side and in the units of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..typing import Array, Bool, Float


class Units(eqx.Module):
    """Times are (t − t_middle) / t_scale, between −1 and 1; values (y − y_mean) / y_scale."""

    t_middle: Float[Array, ""]
    t_scale: Float[Array, ""]
    y_mean: Float[Array, ""]
    y_scale: Float[Array, ""]


class Sequences(eqx.Module):
    """J sequences in the model's units, filled up to the longest with rows that `observed` leaves out."""

    t: Float[Array, "J N"]
    y: Float[Array, "J N"]
    observed: Bool[Array, "J N"]

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


def read_sequences(pairs: Sequence[Any]) -> tuple[Sequences, Units]:
    """Checked sequences (t, y), sorted by time, in the model's units."""
    checked = [_checked(index, *_pair(index, pair)) for index, pair in enumerate(pairs)]
    times, values = (np.concatenate([pair[part] for pair in checked]) for part in range(2))
    middle, scale = 0.5 * (times.min() + times.max()), 0.5 * np.ptp(times)
    units = Units(*(jnp.asarray(number, times.dtype) for number in (middle, scale, values.mean(), values.std() or 1.0)))
    longest = max(len(t) for t, _ in checked)
    t = np.stack([np.pad(t, (0, longest - len(t)), mode="edge") for t, _ in checked])
    y = np.stack([np.pad(y, (0, longest - len(y)), mode="edge") for _, y in checked])
    observed = np.stack([np.arange(longest) < len(t) for t, _ in checked])
    scaled = (t - middle) / scale, (y - values.mean()) / (values.std() or 1.0)
    model_t, model_y = (jnp.asarray(part.astype(times.dtype)) for part in scaled)
    return Sequences(model_t, model_y, jnp.asarray(observed)), units


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
