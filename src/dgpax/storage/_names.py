"""The classes and functions that a file may name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..errors import InputError, ModelFileError


class Names:
    """A closed table from names to classes and functions. What isn't in it can be neither written nor read."""

    def __init__(self, known: Mapping[str, Any]):
        self.known = dict(known)
        self._names = {id(value): name for name, value in reversed(self.known.items())}

    def with_own(self, own: tuple[Any, ...]) -> Names:
        """The same table with a user's classes and functions, known by their short names."""
        named = {f"own.{value.__name__}": value for value in own}
        if len(named) < len(own):
            raise InputError(f"Own classes and functions need different names; got {sorted(named)} for {len(own)}.")
        return Names({**self.known, **named})

    def of(self, value: Any) -> str | None:
        """The name of a class or function, or None."""
        return self._names.get(id(value))

    def find(self, name: str) -> Any:
        """What a name stands for."""
        if name not in self.known:
            own = "own=(...): it is one of those that were passed on saving" if name.startswith("own.") else "dgpax"
            raise ModelFileError(f"The file names {name[:100]!r}, which isn't in {own}.")
        return self.known[name]


def is_record(kind: Any) -> bool:
    """Whether this is a class of named fields: an Equinox module, a dataclass or a NamedTuple."""
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or _is_named_tuple(kind))


def field_names(kind: type) -> tuple[str, ...]:
    """The fields of such a class, in order."""
    if _is_named_tuple(kind):
        return kind._fields
    return tuple(field.name for field in dataclasses.fields(kind))


def make(kind: type, values: Mapping[str, Any]) -> Any:
    """An instance with exactly these fields; nothing is converted, so that it is what was written to the last bit."""
    if _is_named_tuple(kind):
        return kind(**values)
    instance = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(instance, name, value)
    return instance


def _is_named_tuple(kind: Any) -> bool:
    return issubclass(kind, tuple) and getattr(kind, "_fields", None) is not None
