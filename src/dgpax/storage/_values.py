"""Values as JSON and named arrays; `_decoding` has the way back.

None, booleans, integers, text and finite floats stand for themselves, a JSON array for a tuple. Everything else is an
object with a "kind".
"""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from ..errors import ModelFileError
from ._limits import DEEPEST
from ._names import Names, field_names, is_record

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
        self._depth = 0

    def node(self, value: Any, path: str) -> Any:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ModelFileError(f"{_place(path[:100])}… is nested more than {DEEPEST} deep, which a file can't hold.")
        encoded = self._node(value, path)
        self._depth -= 1
        return encoded

    def _node(self, value: Any, path: str) -> Any:
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


def _home(value: Any) -> str:
    """Whose array it is; one of JAX without a dtype of its own (from a Python number) is "weak"."""
    if isinstance(value, jax.Array):
        return "weak" if value.weak_type else "jax"
    return "numpy" if isinstance(value, np.ndarray) else "scalar"


def _place(path: str) -> str:
    return path or "What is saved"
