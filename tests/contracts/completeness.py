"""Which classes a contract suite must cover."""

from __future__ import annotations

import inspect


def final_subclasses(base: type) -> set[type]:
    """All concrete subclasses of `base` that the package defines."""
    found = set()
    for child in base.__subclasses__():
        found |= final_subclasses(child)
        if not inspect.isabstract(child) and not child.__name__.startswith("Abstract"):
            found.add(child)
    return {kind for kind in found if kind.__module__.startswith("dgpax.")}
