"""Rows of inputs and outputs, and the checking constructor."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..errors import DgpaxWarning, InputError, InputTypeError, UnknownNameError
from ..parameters import counted, html_table
from ..typing import Array, Float, Int
from ._validation import (
    Columns,
    all_finite,
    named,
    read_inputs,
    read_outputs,
    read_weights,
    refuse_infinite,
    refuse_missing,
)

FEW_ROWS = 5
"""That a notebook shows."""


class Dataset(eqx.Module):
    """Inputs `x`, outputs `y` (NaN: this output is missing) and `scale`, the N/B of minibatch objectives.

    Takes arrays that are already checked, so that it can be built inside jit; `dataset` is the constructor that
    checks. Names are () where the source had none. `rows` are the row numbers of a minibatch in the data it was drawn
    from; None means all rows in their order. `weights` say how often every row counts, 0 or more and not necessarily
    whole; None means once.

    >>> import dgpax
    >>> data = dgpax.dataset([[0.0], [1.0], [2.0]], [1.0, 3.0, 2.0])
    >>> data.x.shape, data.y.shape
    ((3, 1), (3, 1))
    """

    x: Float[Array, "N D"]
    y: Float[Array, "N P"]
    scale: Float[Array, ""] | float = 1.0
    rows: Int[Array, " N"] | None = None
    weights: Float[Array, " N"] | None = None
    input_names: tuple[str, ...] = eqx.field(static=True, default=())
    output_names: tuple[str, ...] = eqx.field(static=True, default=())

    def __repr__(self) -> str:
        sizes = (self.num_rows, "row"), (self.num_inputs, "input"), (self.num_outputs, "output")
        weighted = "" if self.weights is None else ", weighted"
        return f"Dataset({', '.join(counted(*size) for size in sizes)}{weighted})"

    def _repr_html_(self) -> str:
        names = self.input_names or tuple(f"x{i}" for i in range(self.num_inputs))
        names += self.output_names or tuple(f"y{i}" for i in range(self.num_outputs))
        rows = np.hstack([np.asarray(self.x[:FEW_ROWS]), np.asarray(self.y[:FEW_ROWS])])
        return html_table(names, [[f"{value:.5g}" for value in row] for row in rows], f"{self!r}, of which the first")

    @property
    def num_rows(self) -> int:
        return self.x.shape[0]

    @property
    def num_inputs(self) -> int:
        return self.x.shape[1]

    @property
    def num_outputs(self) -> int:
        return self.y.shape[1]

    def take(self, rows: Int[Array, " B"]) -> Dataset:
        """These rows, in this order, as a dataset of their own; names, weights and scale stay."""
        weights = None if self.weights is None else self.weights[rows]
        return dataclasses.replace(self, x=self.x[rows], y=self.y[rows], rows=None, weights=weights)

    def row_numbers(self) -> Int[Array, " N"]:
        """Which rows of the whole data these are."""
        return jnp.arange(self.num_rows) if self.rows is None else self.rows

    def weighted(self, per_row: Float[Array, "*batch N"]) -> Float[Array, "*batch N"]:
        """A quantity of every row, as often as the row counts."""
        return per_row if self.weights is None else self.weights.astype(per_row.dtype) * per_row

    def refuse_weights(self, who: str) -> None:
        """Raise an error that says what to do if the rows have weights."""
        if self.weights is not None:
            raise InputError(
                f"{who} has no row weights. Use variational inference, or repeat the rows that count several times."
            )

    def counted(self) -> Dataset:
        """The rows whose weight isn't 0. Not for use inside jit."""
        if self.weights is None:
            return self
        weights = np.asarray(self.weights)
        x, y = np.asarray(self.x)[weights > 0], np.asarray(self.y)[weights > 0]
        own = jnp.asarray(weights[weights > 0])
        return dataclasses.replace(self, x=jnp.asarray(x), y=jnp.asarray(y), weights=own, rows=None)


def dataset(x, y, *, weights=None, missing: str = "error") -> Dataset:
    """Check data and bring it into the form that models take.

    `x` is [N, D], `y` is [N] or [N, P]: NumPy or JAX arrays, lists, pandas or polars frames (whose column names are
    kept). float32 stays float32; integers, booleans and other floats become the default float. The values are copied.

    `missing` says what to do with NaN: "error" raises; "drop" leaves out every row that has one, with a warning;
    "keep_outputs" keeps NaN in y as missing outputs, if every row and every column of y has at least one value.
    Infinite values always raise. `weights` [N] say how often every row counts; exact and collapsed inference refuse
    them.

    >>> import dgpax
    >>> data = dgpax.dataset([[0.0], [1.0], [2.0]], [1.0, 3.0, 2.0])
    >>> data.num_rows, data.num_inputs, data.num_outputs
    (3, 1, 1)
    >>> dgpax.dataset([[0.0], [float("nan")]], [1.0, 3.0])
    Traceback (most recent call last):
        ...
    dgpax.errors.InputError: x has NaN in 1 of 2 rows, in column 0. Fill them in, or leave these rows out with ...
    """
    _check_call(missing, x, y)
    inputs, outputs = read_inputs(x), read_outputs(y)
    if len(inputs.values) != len(outputs.values):
        raise InputError(
            f"x and y must have the same number of rows; x has {len(inputs.values)}, y has {len(outputs.values)}. "
            "Give every row of x its y."
        )
    return _checked(inputs, outputs, missing, None if weights is None else read_weights(weights, len(inputs.values)))


def outputs_only(y, *, missing: str = "keep_outputs") -> Dataset:
    """As `dataset`, without inputs: x is [N, 0]. For models whose inputs are latent, which fill gaps in y by nature."""
    _check_call(missing, y)
    outputs = read_outputs(y)
    nothing = np.zeros((len(outputs.values), 0), outputs.values.dtype)
    return _checked(Columns(nothing, (), "x"), outputs, missing)


def _check_call(missing: str, *values) -> None:
    if missing not in _POLICIES:
        raise UnknownNameError(f"dataset(missing={missing!r}) isn't known. There are: {', '.join(_POLICIES)}.")
    if any(isinstance(value, Tracer) for value in values):
        raise InputTypeError(
            "dataset() looks at the values, which are unknown inside jit, grad or vmap. "
            "Call it outside and pass the Dataset in, or use Dataset(x, y), which checks nothing."
        )


def _checked(inputs: Columns, outputs: Columns, missing: str, weights: np.ndarray | None = None) -> Dataset:
    if not (all_finite(inputs.values) and all_finite(outputs.values)):
        refuse_infinite(inputs)
        refuse_infinite(outputs)
        if weights is not None and missing == "drop":
            weights = weights[_complete(inputs, outputs)]
        inputs, outputs = _POLICIES[missing](inputs, outputs)
    x, y = inputs.to_jax(), outputs.to_jax()
    own = None if weights is None else jnp.asarray(weights, x.dtype)
    return Dataset(x, y, weights=own, input_names=inputs.names, output_names=outputs.names)


def _refuse(inputs: Columns, outputs: Columns) -> tuple[Columns, Columns]:
    advice = "Fill them in, or leave these rows out with dataset(..., missing='drop')."
    refuse_missing(inputs, advice)
    refuse_missing(outputs, f"{advice} With several outputs, missing='keep_outputs' keeps the rows that have some.")
    return inputs, outputs


def _drop(inputs: Columns, outputs: Columns) -> tuple[Columns, Columns]:
    complete = _complete(inputs, outputs)
    num_rows, num_dropped = len(complete), int(np.sum(~complete))
    if num_dropped == num_rows:
        raise InputError(
            f"All {num_rows} rows have NaN in x or y: after dropping them there are 0 sample(s), "
            "while a minimum of 1 is required. Fill in the missing values."
        )
    warnings.warn(f"Dropped {num_dropped} of {num_rows} rows that have NaN in x or y.", DgpaxWarning, stacklevel=4)
    return inputs.rows(complete), outputs.rows(complete)


def _complete(inputs: Columns, outputs: Columns) -> np.ndarray:
    return np.all(~np.isnan(np.hstack([inputs.values, outputs.values])), axis=1)


def _keep_outputs(inputs: Columns, outputs: Columns) -> tuple[Columns, Columns]:
    refuse_missing(inputs, "Only outputs can be missing: fill the inputs in, or use missing='drop'.")
    absent = np.isnan(outputs.values)
    empty_rows = int(np.sum(absent.all(axis=1)))
    if empty_rows:
        raise InputError(
            f"{empty_rows} of {len(absent)} rows have no output at all (NaN in every column of y). "
            "Leave them out, or use missing='drop', which drops every row with NaN."
        )
    empty_columns = np.flatnonzero(absent.all(axis=0))
    if len(empty_columns):
        raise InputError(f"y has no value at all in {named(outputs, empty_columns)}. Leave that output out.")
    return inputs, outputs


_POLICIES: dict[str, Callable[[Columns, Columns], tuple[Columns, Columns]]] = {
    "error": _refuse,
    "drop": _drop,
    "keep_outputs": _keep_outputs,
}
