"""A number for a value that is the same in every process, and another for another value."""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from ._names import field_names, is_record


def fingerprint(value: Any) -> str:
    """SHA-256 of numbers, text, arrays, records and functions (their code and what they close over).

    Objects of any other type count by their type only: what they hold can't be told in a way that other processes agree
    with.
    """
    digest = hashlib.sha256()
    for part in _parts(value, frozenset()):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def _parts(value: Any, above: frozenset[int]) -> Iterator[bytes]:
    """The bytes that make a value; `above` are the values around it, so that one that holds itself has an end."""
    yield _type_name(value).encode()
    if value is None or isinstance(value, bool | int | float | str | bytes):
        yield repr(value).encode()
    elif isinstance(value, jax.Array | np.ndarray | np.generic):
        yield f"{value.dtype} {value.shape}".encode()
        yield np.asarray(value).tobytes()
    elif isinstance(value, type):
        yield f"{value.__module__}.{value.__qualname__}".encode()
    elif id(value) not in above:
        for child in _children(value):
            yield from _parts(child, above | {id(value)})


def _children(value: Any) -> list[Any]:
    if is_record(type(value)):
        return [(name, getattr(value, name)) for name in field_names(type(value))]
    if isinstance(value, tuple | list):
        return list(value)
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, frozenset | set):
        return sorted(map(fingerprint, value))
    if isinstance(value, types.FunctionType):
        inner = _without_checks(value)
        cells = [cell.cell_contents for cell in inner.__closure__ or ()]
        return [inner.__module__, inner.__qualname__, inner.__code__, inner.__defaults__, inner.__kwdefaults__, *cells]
    if isinstance(value, types.CodeType):
        return [value.co_code, value.co_names, value.co_consts]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    return []


def _without_checks(function: Any) -> Any:
    """Our own functions without the checks of shapes that a process may have asked jaxtyping to wrap around them."""
    ours = (function.__module__ or "").partition(".")[0] == __name__.partition(".")[0]
    return inspect.unwrap(function) if ours else function


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
