"""What predictions of a fit have in common, computed once and kept as long as its posterior."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import NamedTuple, TypeVar

import jax
from jax.core import Tracer

from ..model import DeepGP
from ..posteriors import AbstractPosterior

T = TypeVar("T")


class Kept(NamedTuple):
    """A value, and what it belongs to besides the posterior."""

    model: weakref.ref[DeepGP]
    words: Hashable
    value: object


_KEPT: dict[int, Kept] = {}
"""By the identity of the posterior; the latest of each."""


def kept(compute: Callable[..., T], model: DeepGP, posterior: AbstractPosterior, *words: Hashable) -> T:
    """compute(model, posterior, *words), or what it gave for the same last time."""
    number = id(posterior)
    found = _KEPT.get(number)
    if found is not None and found.model() is model and found.words == words:
        return found.value  # pyright: ignore[reportReturnType]
    value = compute(model, posterior, *words)
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((model, posterior, value))):
        return value
    if found is None:
        weakref.finalize(posterior, _KEPT.pop, number, None)
    _KEPT[number] = Kept(weakref.ref(model), words, value)
    return value
