"""Whether a value is of the type that a class says of a field."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from functools import cache
from numbers import Integral, Real
from typing import Any, Union, get_args, get_origin

import jax
import numpy as np


@cache
def field_types(kind: type) -> dict[str, Any]:
    """The types of a class's fields; none where its annotations can't be read."""
    try:
        return typing.get_type_hints(kind)
    except (NameError, TypeError, AttributeError):
        return {}


def conforms(value: Any, wanted: Any) -> bool:
    """Whether a value is of a type. Arrays may be of NumPy or JAX and of any shape; what a type says that isn't known
    here holds of everything."""
    origin, arguments = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        return any(conforms(value, one) for one in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and _are(value, arguments)
    if origin is list:
        return isinstance(value, list) and all(conforms(item, arguments[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            conforms(key, arguments[0]) and conforms(item, arguments[1]) for key, item in value.items()
        )
    if origin is Callable or wanted is Callable:
        return callable(value)
    if origin is not None:
        return not isinstance(origin, type) or isinstance(value, origin)
    if wanted is None or wanted is Any:
        return wanted is Any or value is None
    return _is_a(value, wanted)


def _are(items: tuple[Any, ...], wanted: tuple[Any, ...]) -> bool:
    if len(wanted) == 2 and wanted[1] is Ellipsis:
        return all(conforms(item, wanted[0]) for item in items)
    return len(items) == len(wanted) and all(map(conforms, items, wanted))


def _is_a(value: Any, wanted: Any) -> bool:
    """Numbers of NumPy count as numbers."""
    dtypes = getattr(wanted, "dtypes", None)
    if dtypes is not None and hasattr(wanted, "array_type"):
        return isinstance(value, jax.Array | np.ndarray) and (
            not isinstance(dtypes, tuple) or str(value.dtype) in dtypes
        )
    if wanted is bool:
        return isinstance(value, bool | np.bool_)
    if wanted in (int, float):
        return isinstance(value, Integral if wanted is int else Real) and not isinstance(value, bool)
    if not isinstance(wanted, type) or getattr(wanted, "__module__", "").partition(".")[0] == "jaxtyping":
        return True
    return isinstance(value, wanted)
