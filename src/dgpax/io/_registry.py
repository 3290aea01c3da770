"""The classes of dgpax that a saved model may be made of: all concrete public ones of these packages."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator

from .. import (
    data,
    distributions,
    inducing,
    inference,
    kernels,
    layers,
    likelihoods,
    linalg,
    means,
    model,
    parameters,
    posteriors,
)
from ..storage import Names, is_record
from ._estimators import SavedEstimator, Texts
from ._table_model import TableModel

PACKAGES = (
    data,
    distributions,
    inducing,
    inference,
    kernels,
    layers,
    likelihoods,
    linalg,
    means,
    model,
    parameters,
    posteriors,
)


def _classes(package: types.ModuleType) -> Iterator[tuple[str, type]]:
    """The concrete classes with named fields that a package defines and publishes."""
    for name, value in vars(package).items():
        own = is_record(value) and value.__module__.startswith(package.__name__)
        if own and not name.startswith("_") and not inspect.isabstract(value) and not name.startswith("Abstract"):
            yield f"{package.__name__.removeprefix('dgpax.')}.{name}", value


REGISTRY = Names(
    {name: kind for package in PACKAGES for name, kind in _classes(package)}
    | {"estimators.SavedEstimator": SavedEstimator, "estimators.Texts": Texts, "io.TableModel": TableModel}
)
