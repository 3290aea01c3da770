"""The classes of dgpax that a file may be made of: all concrete ones with named fields, of these packages."""

from __future__ import annotations

import inspect
import pkgutil
import types
from collections.abc import Iterator
from importlib import import_module

from ..data import Written
from ..storage import Names, is_record
from ._estimators import SavedEstimator, Texts
from ._table_model import TableModel

PACKAGES = [
    "alignment",
    "data",
    "distributions",
    "fits",
    "inducing",
    "inference",
    "kernels",
    "layers",
    "likelihoods",
    "linalg",
    "means",
    "model",
    "parameters",
    "posteriors",
    "stride",
    "warps",
]


def _classes(package: types.ModuleType) -> Iterator[tuple[str, type]]:
    for module in _modules(package):
        for name, value in vars(module).items():
            own = is_record(value) and value.__module__ == module.__name__
            if own and not name.startswith(("_", "Abstract")) and not inspect.isabstract(value):
                yield f"{package.__name__.removeprefix('dgpax.')}.{name}", value


def _modules(package: types.ModuleType) -> Iterator[types.ModuleType]:
    yield package
    for found in pkgutil.iter_modules(getattr(package, "__path__", ())):
        yield import_module(f"{package.__name__}.{found.name}")


REGISTRY = Names(
    {name: kind for noun in PACKAGES for name, kind in _classes(import_module(f"dgpax.{noun}"))}
    | {"estimators.SavedEstimator": SavedEstimator, "estimators.Texts": Texts, "io.TableModel": TableModel}
    | {"data.Written": Written}
)
