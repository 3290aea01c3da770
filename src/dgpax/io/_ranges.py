"""The numbers of a fit from a file: finite where they must be, and of one size with each other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from typing import Any, NoReturn

import jax
import numpy as np

from ..data import Encoding, Scaling
from ..errors import ModelFileError
from ..fits import AbstractFit, Ensemble, Fit, FitReport
from ..model import DeepGP
from ..parameters import AbstractParameter, Bounded, LowerTriangular, Positive
from ..storage import field_names, is_record


def refuse_ranges(fitted: AbstractFit) -> None:
    """Raise `ModelFileError` if a number of the fit can't be."""
    for part in parts_of(fitted):
        _check(part)
    if not isinstance(fitted, Ensemble) and fitted.num_inputs < 0:
        _refuse(f"it has {fitted.num_inputs} inputs")
    if fitted.input_names and len(fitted.input_names) != fitted.num_inputs:
        _refuse(f"it has {len(fitted.input_names)} names for {fitted.num_inputs} inputs")


def refuse_other_columns(encoding: Encoding, fitted: AbstractFit) -> None:
    """Raise if the encoding makes another number of columns than the fit takes."""
    names = encoding.input_names
    if len(encoding.output_names) != fitted.num_inputs or len(names) not in (0, len(encoding.columns)):
        _refuse(f"its encoding makes {len(encoding.output_names)} columns for a fit of {fitted.num_inputs}")


def parts_of(value: Any) -> Iterator[Any]:
    """All records within a value, itself included."""
    if is_record(type(value)):
        yield value
        children = [getattr(value, name) for name in field_names(type(value))]
    elif isinstance(value, dict):
        children = list(value.values())
    else:
        children = list(value) if isinstance(value, tuple | list) else []
    for child in children:
        yield from parts_of(child)


@singledispatch
def _check(part: Any) -> None:
    """Most parts can have any numbers."""


@_check.register
def _(part: AbstractParameter) -> None:
    name = type(part).__name__
    if not np.all(np.isfinite(np.asarray(part.raw))):
        _refuse(f"a {name} isn't finite")
    if isinstance(part, Positive) and not 0.0 <= part.floor < np.inf:
        _refuse(f"a {name} has the floor {part.floor}")
    if isinstance(part, Bounded) and not -np.inf < part.low < part.high < np.inf:
        _refuse(f"a {name} lies between {part.low} and {part.high}")
    shape = np.shape(part.raw)
    if isinstance(part, LowerTriangular) and (len(shape) < 2 or shape[-1] != shape[-2]):
        _refuse(f"a {name} has the shape {shape}")


@_check.register
def _(part: Scaling) -> None:
    x, y = part.x_mean, part.y_mean
    shapes = [np.shape(x), np.shape(part.x_scale), np.shape(part.x_constant), np.shape(y), np.shape(part.y_scale)]
    if x.ndim != 1 or y.ndim != 1 or shapes != [x.shape, x.shape, x.shape, y.shape, y.shape]:
        _refuse(f"its scaling has the shapes {shapes}")
    numbers = [np.asarray(values) for values in (x, part.x_scale, y, part.y_scale)]
    if not all(np.all(np.isfinite(values)) for values in numbers) or np.any(numbers[1] <= 0) or np.any(numbers[3] <= 0):
        _refuse("its scaling isn't finite and positive")


@_check.register
def _(part: FitReport) -> None:
    if part.history.ndim != 1 or part.history.dtype.kind != "f":
        _refuse(f"the history in its report is {part.history.dtype} of shape {part.history.shape}")


@_check.register
def _(part: DeepGP) -> None:
    if not part.layers:
        _refuse("its model has no layers")


@_check.register
def _(part: Fit) -> None:
    for leaf in jax.tree.leaves((part.model, part.posterior)):
        if isinstance(leaf, jax.Array) and leaf.dtype.kind == "f" and not np.all(np.isfinite(np.asarray(leaf))):
            _refuse("its model or posterior has numbers that aren't finite")


@_check.register
def _(part: Ensemble) -> None:
    weights = np.asarray(part.weights, float)
    if (
        not len(weights) == len(part.members) > 0
        or not np.all(np.isfinite(weights) & (weights >= 0))
        or not any(weights)
    ):
        _refuse(f"an ensemble of {len(part.members)} has the weights {str(part.weights)[:100]}")
    if len({member.num_inputs for member in part.members}) > 1:
        _refuse("the members of an ensemble have different numbers of inputs")


def _refuse(why: str) -> NoReturn:
    raise ModelFileError(f"The file holds a fit that can't be: {why}. It was changed.")
