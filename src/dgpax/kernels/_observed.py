"""A kernel whose rows observe f, a derivative of f or an integral of f."""

from __future__ import annotations

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..typing import Array, Float
from ._base import AbstractKernel
from ._dot_product import ArcCosine
from ._functional import Functional, functional_cross, functional_gram
from ._simple import MarkedWhite, White
from ._stationary import Matern12
from ._windows import Window


class Observed(AbstractKernel):
    """The covariance of linear functionals of a function f of D inputs with the given kernel [FRAMEWORK, sec. 3.1].

    A row says what it observes: weight · f̄(x) + direction · ∇f̄(x), f̄ the average of f over a window around x.
    Its columns are
      x (D)                                                           for f(x) itself, as in predictions;
      x (D), weight, direction (D)                                    for derivatives too, with every kernel;
      x (D), weight, direction (D), box widths (D), gaussian widths (D)  for integrals too, with RBF and its sums.
    `observe` writes them. All rows share one f, so exact, sparse and variational inference work unchanged. The
    columns are not quantities to be scaled: use the model without input scaling.
    """

    kernel: AbstractKernel
    num_inputs: int = eqx.field(static=True)

    def __check_init__(self):
        if self.num_inputs < 1:
            raise InputError(f"Observed(num_inputs=...) must be at least 1; got {self.num_inputs}.")
        refuse_rough(self.kernel)

    def read(self, x: Float[Array, "*b N E"]) -> Functional:
        """The functionals that the rows describe."""
        D, E = self.num_inputs, x.shape[-1]
        if E == D:
            return Functional(x)
        if E not in (2 * D + 1, 4 * D + 1):
            raise InputError(
                f"Observed on {D} inputs takes rows of {D}, {2 * D + 1} or {4 * D + 1} columns; got {E}. "
                "Write them with observe(values=..., derivatives=..., integrals=...)."
            )
        points, weight, direction = x[..., :D], x[..., D], x[..., D + 1 : 2 * D + 1]
        if E == 2 * D + 1:
            return Functional(points, weight, direction)
        return Functional(points, weight, direction, Window(x[..., 2 * D + 1 : 3 * D + 1], x[..., 3 * D + 1 :]))

    def cross(self, x, y):
        return functional_cross(self.kernel, self.read(x), self.read(y))

    def gram(self, x):
        return functional_gram(self.kernel, self.read(x))

    def diag(self, x):
        def variance(row):
            return self.cross(row[..., None, :], row[..., None, :])[..., 0, 0]

        return jax.vmap(variance, in_axes=-2, out_axes=-1)(x)


def refuse_rough(kernel: AbstractKernel) -> None:
    """Raise for a kernel whose functions have no derivative."""

    def rough(part):
        return isinstance(part, White | MarkedWhite | Matern12) or (isinstance(part, ArcCosine) and part.order == 0)

    found = [type(part).__name__ for part in jax.tree.leaves(kernel, is_leaf=rough) if rough(part)]
    if found:
        raise InputError(
            f"Functions drawn from {found[0]} have no derivative. Use a smoother kernel (Matern32, Matern52, RBF); "
            "add white noise outside, as Observed(kernel, num_inputs) + White()."
        )


def observe(
    values=None,
    derivatives: Mapping[int, object] | None = None,
    integrals: tuple[object, object] | None = None,
    averages: tuple[object, object] | None = None,
    weighted: tuple[object, object] | None = None,
) -> Float[Array, "N E"]:
    """Rows for an `Observed` kernel, in the order of the arguments; each location array is [N, D].

    `values`: f at these locations. `derivatives`: {column: locations}, ∂f/∂x_column there. `integrals` and
    `averages`: (low, high), the integral or the mean of f over the box of each row. `weighted`: (locations, widths),
    ∫ f(x) N(x; location, widths²) dx. Rows are as short as they can be: [x, weight, direction] without regions.
    """
    parts = []
    if values is not None:
        parts.append(_rows(_matrix(values, "values")))
    for column, locations in (derivatives or {}).items():
        parts.append(_derivative_rows(_matrix(locations, f"derivatives[{column}]"), column))
    if integrals is not None:
        low, high = _bounds(integrals, "integrals")
        parts.append(_rows(0.5 * (low + high), weight=np.prod(high - low, axis=1), box=high - low))
    if averages is not None:
        low, high = _bounds(averages, "averages")
        parts.append(_rows(0.5 * (low + high), box=high - low))
    if weighted is not None:
        locations, widths = (_matrix(part, "weighted") for part in weighted)
        if locations.shape != widths.shape or not np.all(widths > 0):
            raise InputError(
                f"observe(weighted=(locations, widths)) needs positive widths of the locations' shape, "
                f"{locations.shape}; got {widths.shape} with smallest {widths.min()}. For points use values."
            )
        parts.append(_rows(locations, gaussian=widths))
    if not parts or len({part.shape[1] for part in parts}) > 1:
        found = [(part.shape[1] - 1) // 4 for part in parts]
        raise InputError(f"observe() needs at least one argument, all with the same number of inputs; got {found}.")
    rows = np.concatenate(parts)
    D = (rows.shape[1] - 1) // 4
    has_regions = any(part is not None for part in (integrals, averages, weighted))
    return jnp.asarray(rows if has_regions else rows[:, : 2 * D + 1])


def _matrix(array, name: str) -> np.ndarray:
    matrix = np.asarray(array)
    if matrix.ndim != 2 or not np.issubdtype(matrix.dtype, np.number):
        raise InputError(f"observe({name}) needs locations of shape (N, D); got shape {matrix.shape}.")
    return matrix if np.issubdtype(matrix.dtype, np.floating) else matrix.astype(float)


def _bounds(bounds, name: str) -> tuple[np.ndarray, np.ndarray]:
    low, high = (_matrix(part, name) for part in bounds)
    if low.shape != high.shape or not np.all(low < high):
        raise InputError(
            f"observe({name}=(low, high)) needs low < high in every entry; got shapes {low.shape} and {high.shape}. "
            "Swap the two where low is the larger; for points use values."
        )
    return low, high


def _derivative_rows(x: np.ndarray, column: int) -> np.ndarray:
    if not 0 <= column < x.shape[1]:
        raise InputError(f"observe(derivatives={{column: x}}) needs a column from 0 to {x.shape[1] - 1}; got {column}.")
    return _rows(x, weight=np.zeros(len(x)), direction=np.eye(x.shape[1])[np.full(len(x), column)])


def _rows(x: np.ndarray, weight=None, direction=None, box=None, gaussian=None) -> np.ndarray:
    zero = np.zeros_like(x)
    weights = np.ones(len(x)) if weight is None else weight
    blocks = [x, weights[:, None], *(zero if part is None else part for part in (direction, box, gaussian))]
    return np.concatenate([block.astype(x.dtype) for block in blocks], axis=1)
