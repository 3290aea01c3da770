"""From whatever the user has to a float array, or an error that says what to do."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..errors import DgpaxError, InputError, InputTypeError
from ..typing import Array, Float
from ._arrays import as_numpy
from ._frames import column_names, frame_to_numpy, is_frame, select_columns

_MOST_NAMED = 10

_REFUSED: dict[str, tuple[type[DgpaxError], str]] = {
    "c": (InputError, "Complex data not supported. Pass real and imaginary parts as two columns"),
    "O": (InputError, "Arrays of Python objects can't be used. If all entries are numbers, use array.astype(float)"),
    "U": (InputTypeError, "Text can't be used. Encode it as numbers, e.g. one-hot, or use dgpax.DeepGPRegressor"),
    "S": (InputTypeError, "Text can't be used. Encode it as numbers, e.g. one-hot, or use dgpax.DeepGPRegressor"),
    "T": (InputTypeError, "Text can't be used. Encode it as numbers, e.g. one-hot, or use dgpax.DeepGPRegressor"),
    "M": (InputTypeError, "Times can't be used. Convert them to numbers, e.g. days since a fixed date"),
    "m": (InputTypeError, "Durations can't be used. Convert them to numbers, e.g. seconds"),
}


class Columns(NamedTuple):
    """A float array [N, D], in host memory or on a device, with what its columns are called and what it is for."""

    values: np.ndarray | Array
    names: tuple[str, ...]
    role: str

    def rows(self, keep: np.ndarray) -> Columns:
        return self._replace(values=np.asarray(self.values)[keep])

    def to_jax(self) -> Float[Array, "N D"]:
        """A copy of host memory, so that later changes by its owner don't reach it."""
        return self.values if isinstance(self.values, jax.Array) else jnp.array(self.values)


def check_inputs(x, num_inputs: int, input_names: tuple[str, ...] = ()) -> Float[Array, "N D"]:
    """Check inputs at prediction time against the training data's.

    A frame is brought into the order of `input_names` by its column names. While tracing (jit, grad, vmap), shape and
    dtype are checked and the values can't be.
    """
    if is_frame(x) and input_names and column_names(x, "x"):
        x = select_columns(x, input_names, "x")
    inputs = read_inputs(x)
    if inputs.values.shape[1] != num_inputs:
        raise InputError(
            f"x has {inputs.values.shape[1]} features, but the model is expecting {num_inputs} features as input. "
            "Pass the columns that it was trained on."
        )
    if not isinstance(inputs.values, Tracer) and not all_finite(inputs.values):
        refuse_infinite(inputs)
        refuse_missing(inputs, "Fill them in or leave these rows out.")
    return inputs.to_jax()


def read_inputs(x) -> Columns:
    """x as [N, D] with N, D > 0; NaN and inf are not looked for yet."""
    values, names = _read(x, "x")
    if values.ndim == 1:
        raise InputError(
            f"x must be a table of shape (rows, columns); got a 1-D array of length {values.size}. Reshape your data: "
            "x.reshape(-1, 1) if it is one column (series.to_frame() for a series), x.reshape(1, -1) if it is one row."
        )
    if values.ndim != 2:
        raise InputError(
            f"x must be a table of shape (rows, columns); got shape {values.shape}. "
            "Reshape your data to one row per example: x.reshape(len(x), -1)."
        )
    return _refuse_empty(Columns(values, names, "x"))


def read_outputs(y) -> Columns:
    """y as [N, P] with N, P > 0; NaN and inf are not looked for yet."""
    values, names = _read(y, "y")
    if values.ndim not in (1, 2):
        raise InputError(f"y must have shape (rows,) or (rows, outputs); got shape {values.shape}.")
    return _refuse_empty(Columns(values.reshape(len(values), -1) if values.ndim == 1 else values, names, "y"))


def read_weights(weights: Any, num_rows: int, noun: str = "weight") -> np.ndarray:
    """How often every row counts, [N]."""
    values, _ = _read(weights, f"{noun}s")
    values = np.asarray(values, np.float64)
    if values.shape != (num_rows,):
        raise InputError(f"One {noun} per row is needed, {num_rows} in all; got shape {values.shape}.")
    if not np.all(np.isfinite(values)) or np.any(values < 0.0):
        raise InputError(f"{noun.capitalize()}s must be finite numbers of 0 or more; masked ones count as NaN.")
    if not np.any(values > 0.0):
        raise InputError(f"{noun.capitalize()}s must contain at least one non-zero number.")
    return values


def _refuse_empty(columns: Columns) -> Columns:
    for axis, noun in enumerate(("sample", "feature" if columns.role == "x" else "output")):
        if columns.values.shape[axis] == 0:
            raise InputError(
                f"Found 0 {noun}(s) (shape={columns.values.shape}) while a minimum of 1 is required in {columns.role}."
            )
    return columns


def _read(value: Any, role: str) -> tuple[np.ndarray | Array, tuple[str, ...]]:
    default = np.dtype(jnp.result_type(float))
    if is_frame(value):
        value = _as_series(value)
        return frame_to_numpy(value, role, default), column_names(value, role)
    array = value if isinstance(value, jax.Array) else as_numpy(value, role)
    _refuse_dtype(array.dtype, role)
    is_float32 = array.dtype.kind == "f" and array.dtype.itemsize == 4
    with np.errstate(over="ignore"):
        return array.astype(np.float32 if is_float32 else default), ()


def _as_series(value: Any) -> Any:
    """An array of pandas' own kind, which has neither columns nor a name, as a series."""
    pandas = sys.modules.get("pandas")
    return pandas.Series(value) if pandas and isinstance(value, pandas.api.extensions.ExtensionArray) else value


def _refuse_dtype(dtype: Any, role: str) -> None:
    if isinstance(dtype, np.dtype) and dtype.kind in _REFUSED:
        error, advice = _REFUSED[dtype.kind]
        raise error(f"{advice}; {role} has dtype {dtype}.")
    if not any(jnp.issubdtype(dtype, kind) for kind in (jnp.floating, jnp.integer, jnp.bool_)):
        raise InputTypeError(f"Real numbers are needed; {role} has dtype {dtype}.")


def all_finite(values: np.ndarray | Array) -> bool:
    """Is there neither NaN nor inf? The sum answers without memory, unless it overflows."""
    xp = jnp if isinstance(values, jax.Array) else np
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(xp.isfinite(xp.sum(values))) or bool(xp.all(xp.isfinite(values)))


def refuse_infinite(columns: Columns) -> None:
    """Raise if there is an infinite value."""
    advice = f"Replace them by finite numbers that fit in {columns.values.dtype}, or leave these rows out."
    _refuse_where(np.isinf(np.asarray(columns.values)), columns, "inf", advice)


def refuse_missing(columns: Columns, advice: str) -> None:
    """Raise if there is a NaN."""
    _refuse_where(np.isnan(np.asarray(columns.values)), columns, "NaN", advice)


def _refuse_where(bad: np.ndarray, columns: Columns, what: str, advice: str) -> None:
    if bad.any():
        raise InputError(
            f"{columns.role} has {what} in {int(bad.any(axis=1).sum())} of {len(bad)} rows, "
            f"in {named(columns, np.flatnonzero(bad.any(axis=0)))}. {advice}"
        )


def named(columns: Columns, indices: np.ndarray) -> str:
    """`column 'age'` or `columns 0, 3`, for messages."""
    labels = [repr(columns.names[i]) if columns.names else str(i) for i in indices[:_MOST_NAMED]]
    more = [f"… ({len(indices)} in all)"] * (len(indices) > _MOST_NAMED)
    return f"column{'s' if len(indices) > 1 else ''} {', '.join(labels + more)}"
