"""Values back from JSON and named arrays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import DgpaxError, ModelFileError
from ._limits import DEEPEST
from ._names import Names, field_names, is_record, make
from ._types import conforms, field_types

MOST_WEAK_SHAPES = 8
"""Arrays, not numbers, without a dtype of their own take a compiled program for each shape."""


def decode(node: Any, arrays: dict[str, np.ndarray], names: Names) -> Any:
    """The value that `encode` was given.

    However often an array is referred to, it is made once; every field is of the type that its class says.
    """
    return _Decoder(arrays, names).value(node, 1)


class _Decoder:
    """What was made already, so that the value is no larger than the file."""

    def __init__(self, arrays: dict[str, np.ndarray], names: Names):
        self.arrays, self.names = arrays, names
        self._made: dict[str, tuple[str, Any]] = {}
        self._weak_shapes: set[tuple[int, ...]] = set()

    def value(self, node: Any, depth: int) -> Any:
        if depth > DEEPEST:
            raise ModelFileError(f"The file is nested too deeply, more than {DEEPEST} values within values.")
        match node:
            case None | bool() | int() | float() | str():
                return node
            case list():
                return tuple([self.value(item, depth + 1) for item in node])
            case {"kind": "float", "value": "nan" | "inf" | "-inf" as value, **rest} if not rest:
                return float(value)
            case {"kind": "list", "items": list(items), **rest} if not rest:
                return [self.value(item, depth + 1) for item in items]
            case {"kind": "dict", "items": list(items), **rest} if not rest:
                return dict([self._pair(item, depth + 1) for item in items])
            case {"kind": "named", "name": str(name), **rest} if not rest:
                return self.names.find(name)
            case {"kind": "array", "name": str(name), "of": str(home), **rest} if not rest and name in self.arrays:
                return self._array(name, home)
            case {"kind": "record", "class": str(name), "fields": dict(fields), **rest} if not rest:
                return self._record(name, fields, depth)
        raise ModelFileError(f"The file holds a part that isn't understood: {_part(node)}.")

    def _pair(self, item: Any, depth: int) -> tuple[str | int, Any]:
        match item:
            case [str() | int() as key, value]:
                return key, self.value(value, depth)
        raise ModelFileError(f"The file holds a dictionary entry that isn't understood: {_part(item)}.")

    def _array(self, name: str, home: str) -> Any:
        if name not in self._made:
            self._made[name] = home, self._rebuilt(self.arrays[name], home)
        known, array = self._made[name]
        if known != home:
            raise ModelFileError(f"The file holds the array {name[:100]} twice, as one of {known!r} and of {home!r}.")
        return array

    def _rebuilt(self, array: np.ndarray, home: str) -> Any:
        match home:
            case "jax":
                return _exactly(jax.device_put(array), array)  # no program is compiled for its shape
            case "weak" if array.ndim == 0:
                return _exactly(jnp.asarray(array.item()), array)
            case "weak":
                self._weak_shapes.add(array.shape)
                if len(self._weak_shapes) > MOST_WEAK_SHAPES:
                    raise ModelFileError(f"The file holds weak arrays of more than {MOST_WEAK_SHAPES} shapes.")
                zeros = jnp.broadcast_to(jnp.asarray(array.dtype.type(0).item()), array.shape)
                return _exactly(zeros.at[...].set(array), array)
            case "numpy":
                return array
            case "scalar" if array.ndim == 0:
                return array[()]
        raise ModelFileError(f"The file holds an array of {home[:100]!r}, which isn't known.")

    def _record(self, name: str, fields: dict[str, Any], depth: int) -> Any:
        kind = self.names.find(name)
        if not is_record(kind):
            raise ModelFileError(f"The file uses {name[:100]!r} as a class, which it isn't.")
        if set(fields) != set(field_names(kind)):
            wrong = ", ".join(sorted(set(fields) ^ set(field_names(kind))))
            raise ModelFileError(
                f"{name} has the fields {', '.join(field_names(kind))}; the file differs in {wrong[:200]}. It was "
                "written by another version of dgpax."
            )
        values, types = {}, field_types(kind)
        for own in field_names(kind):
            values[own] = self.value(fields[own], depth + 1)
            if own in types and not conforms(values[own], types[own]):
                raise ModelFileError(
                    f"The file has a {name} whose {own} is {_shown(values[own])} of type {type(values[own]).__name__}, "
                    "which can't be: it was changed, or written by another version of dgpax."
                )
        made = make(kind, values)
        _refuse_impossible(name, made)
        return made


def _refuse_impossible(name: str, made: Any) -> None:
    """What a class of Equinox's checks of an instance when it is made holds of one from a file too."""
    for kind in type(made).__mro__:
        check = vars(kind).get("__check_init__")
        if check is not None:
            try:
                check(made)
            except (DgpaxError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                raise ModelFileError(f"The file has a {name} that can't be: {str(error)[:500]}") from error


def _exactly(value: jax.Array, array: np.ndarray) -> jax.Array:
    if value.dtype != array.dtype:
        raise ModelFileError(
            f"The file holds {array.dtype} numbers, which would become {value.dtype} here: 64-bit numbers are switched "
            "off. Unset JAX_ENABLE_X64=0, or jax.config.update('jax_enable_x64', True)."
        )
    return value


def _part(node: Any) -> str:
    """What kind of part it claims to be."""
    if isinstance(node, dict):
        return f"{str(node.get('kind'))[:40]!r} with {', '.join(sorted(node))[:100]}"
    return _shown(node)


def _shown(value: Any) -> str:
    """What it is, in few words however large it is."""
    if isinstance(value, jax.Array | np.ndarray):
        return f"an array {value.shape}"
    if isinstance(value, list | tuple | dict):
        return f"{len(value)} values"
    return repr(value)[:100] if isinstance(value, int | float | None) else str(value)[:100]
