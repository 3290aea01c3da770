"""The examples in docstrings run, and say what comes out."""

from __future__ import annotations

import doctest
import inspect
import types
from typing import Any

import pytest

import dgpax

SLOW = {
    "DeepGPClassifier", "DeepGPRegressor", "DeepGPTransformer", "Ensemble", "HeldOut", "InMemory",
    "compare_with_one_layer", "decoder", "fit_many", "gplvm", "latent_positions", "pair_effect", "sobol_indices",
    "stream", "suggest",
}  # fmt: skip
"""Those that compile a model of their own."""


def offered() -> dict[str, Any]:
    """What dgpax offers, imported."""
    return {name: getattr(dgpax, name) for name in dir(dgpax)}


def public() -> dict[str, Any]:
    """Public classes and functions by name, those of dgpax itself and of its packages."""
    modules = [dgpax, *(value for value in offered().values() if isinstance(value, types.ModuleType))]
    return {
        name: value
        for module in modules
        if module.__name__.startswith("dgpax")
        for name, value in (offered() if module is dgpax else vars(module)).items()
        if not name.startswith("_") and callable(value) and getattr(value, "__module__", "").startswith("dgpax")
    }


EXAMPLES = {name: value for name, value in public().items() if ">>>" in (inspect.getdoc(value) or "")}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in sorted(EXAMPLES)],
)
def test_an_example_says_what_comes_out(name):
    (example,) = doctest.DocTestFinder(recurse=False).find(EXAMPLES[name], name, globs={})
    failures: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=failures.append)
    assert example.examples and not failures, "".join(failures)


def test_whoever_begins_meets_examples():
    names = [name for name, value in offered().items() if public().get(name) is value]
    assert len(names) >= 28 and set(names) <= set(EXAMPLES)
