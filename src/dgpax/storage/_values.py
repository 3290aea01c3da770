"""Values as JSON and named arrays, and back.

None, booleans, integers, text and finite floats stand for themselves, a JSON array for a tuple. Everything else is an
object with a "kind".
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import ModelFileError
from ._names import Names, field_names, is_record, make

DTYPES = {"bool": "BOOL", "float16": "F16", "float32": "F32", "float64": "F64"} | {
    f"{sign}int{bits}": f"{letter}{bits}" for sign, letter in (("", "I"), ("u", "U")) for bits in (8, 16, 32, 64)
}
"""The types of numbers that a file can hold, and their names in safetensors."""


def is_plain(value: Any) -> bool:
    """Whether a value is made of numbers, text, arrays, tuples, lists and dictionaries only."""
    try:
        encode(value, Names({}))
    except ModelFileError:
        return False
    return True


def encode(value: Any, names: Names) -> tuple[Any, dict[str, np.ndarray]]:
    """The JSON of a value, and its arrays by where they stand in it."""
    encoder = _Encoder(names)
    return encoder.node(value, ""), encoder.arrays


class _Encoder:
    """Collects arrays on the way through a value; one that stands in several places is kept once."""

    def __init__(self, names: Names):
        self.names = names
        self.arrays: dict[str, np.ndarray] = {}
        self._seen: dict[int, tuple[Any, str]] = {}

    def node(self, value: Any, path: str) -> Any:
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"kind": "float", "value": repr(value)}
        if type(value) is tuple:
            return [self.node(item, f"{path}[{index}]") for index, item in enumerate(value)]
        if type(value) is list:
            return {"kind": "list", "items": self.node(tuple(value), path)}
        if type(value) is dict:
            pairs = [[self._key(key, path), self.node(item, f"{path}[{key!r}]")] for key, item in value.items()]
            return {"kind": "dict", "items": pairs}
        if isinstance(value, jax.Array | np.ndarray | np.generic):
            return self._array(value, path)
        if is_record(type(value)):
            return self._record(value, path)
        return self._named(value, path)

    def _key(self, key: Any, path: str) -> str | int:
        if type(key) not in (str, int):
            raise ModelFileError(f"{_place(path)} has a key {key!r}; in a file they can be text or integers.")
        return key

    def _record(self, value: Any, path: str) -> dict[str, Any]:
        name = self.names.of(type(value))
        if name is None:
            raise ModelFileError(
                f"{_place(path)} is a {type(value).__qualname__}, which isn't a class of dgpax. For a class of "
                f"your own say so on saving and on loading: own=({type(value).__name__},)."
            )
        stem = f"{path}." if path else ""
        fields = {name: self.node(getattr(value, name), f"{stem}{name}") for name in field_names(type(value))}
        return {"kind": "record", "class": name, "fields": fields}

    def _named(self, value: Any, path: str) -> dict[str, Any]:
        name = self.names.of(value)
        if name is None:
            kind = "a function" if callable(value) else f"a {type(value).__qualname__}"
            raise ModelFileError(
                f"{_place(path)} is {kind} ({getattr(value, '__name__', repr(value))[:100]}), which a file can't hold. "
                "A function can be named instead, on saving and on loading: own=(the_function,)."
            )
        return {"kind": "named", "name": name}

    def _array(self, value: Any, path: str) -> dict[str, Any]:
        if str(value.dtype) not in DTYPES:
            raise ModelFileError(f"{_place(path)} is an array of {value.dtype}, which a file can't hold.")
        _, name = self._seen.setdefault(id(value), (value, path or "value"))
        self.arrays.setdefault(name, np.asarray(value, order="C"))
        return {"kind": "array", "name": name, "of": _home(value)}


def decode(node: Any, arrays: dict[str, np.ndarray], names: Names) -> Any:
    """The value that `encode` was given."""
    match node:
        case None | bool() | int() | float() | str():
            return node
        case list():
            return tuple(decode(item, arrays, names) for item in node)
        case {"kind": "float", "value": "nan" | "inf" | "-inf" as value, **rest} if not rest:
            return float(value)
        case {"kind": "list", "items": list(items), **rest} if not rest:
            return [decode(item, arrays, names) for item in items]
        case {"kind": "dict", "items": list(items), **rest} if not rest:
            return dict(_pair(item, arrays, names) for item in items)
        case {"kind": "named", "name": str(name), **rest} if not rest:
            return names.find(name)
        case {"kind": "array", "name": str(name), "of": str(home), **rest} if not rest and name in arrays:
            return _rebuild(arrays[name], home)
        case {"kind": "record", "class": str(name), "fields": dict(fields), **rest} if not rest:
            return _record(name, fields, arrays, names)
    raise ModelFileError(f"The file holds a part that isn't understood: {str(node)[:100]}.")


def _pair(item: Any, arrays: dict[str, np.ndarray], names: Names) -> tuple[str | int, Any]:
    match item:
        case [str() | int() as key, value]:
            return key, decode(value, arrays, names)
    raise ModelFileError(f"The file holds a dictionary entry that isn't understood: {str(item)[:100]}.")


def _record(name: str, fields: dict[str, Any], arrays: dict[str, np.ndarray], names: Names) -> Any:
    kind = names.find(name)
    if not is_record(kind):
        raise ModelFileError(f"The file uses {name!r} as a class, which it isn't.")
    if set(fields) != set(field_names(kind)):
        wrong = ", ".join(sorted(set(fields) ^ set(field_names(kind))))
        raise ModelFileError(
            f"{name} has the fields {', '.join(field_names(kind))}; the file differs in {wrong[:200]}. It was written "
            "by another version of dgpax."
        )
    return make(kind, {name: decode(fields[name], arrays, names) for name in field_names(kind)})


def _home(value: Any) -> str:
    """Whose array it is; one of JAX without a dtype of its own (from a Python number) is "weak"."""
    if isinstance(value, jax.Array):
        return "weak" if value.weak_type else "jax"
    return "numpy" if isinstance(value, np.ndarray) else "scalar"


def _rebuild(array: np.ndarray, home: str) -> Any:
    match home:
        case "jax":
            return _exactly(jnp.asarray(array), array)
        case "weak":
            zeros = jnp.broadcast_to(jnp.asarray(array.dtype.type(0).item()), array.shape)
            return _exactly(zeros.at[...].set(array), array)
        case "numpy":
            return array
        case "scalar":
            return array[()]
    raise ModelFileError(f"The file holds an array of {home[:100]!r}, which isn't known.")


def _exactly(value: jax.Array, array: np.ndarray) -> jax.Array:
    if value.dtype != array.dtype:
        raise ModelFileError(
            f"The file holds {array.dtype} numbers, which would become {value.dtype} here: 64-bit numbers are switched "
            "off. Unset JAX_ENABLE_X64=0, or jax.config.update('jax_enable_x64', True)."
        )
    return value


def _place(path: str) -> str:
    return path or "What is saved"
