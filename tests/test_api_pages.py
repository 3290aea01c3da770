"""The pages of the interface are made from the code, and nothing public is left out."""

from __future__ import annotations

import importlib.util
import re
import types
from pathlib import Path

import pytest

import dgpax

SCRIPT = Path(__file__).parents[1] / "docs" / "make_api.py"


@pytest.fixture(scope="module")
def make_api():
    spec = importlib.util.spec_from_file_location("make_api", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(make_api, tmp_path_factory):
    paths = make_api.write(tmp_path_factory.mktemp("docs") / "api")
    return {path.stem: path.read_text("utf-8") for path in paths}


def test_every_public_name_has_a_heading(pages):
    from test_public_api import PUBLIC

    headings = {stem: set(re.findall(r"^## (.+)$", text, re.MULTILINE)) for stem, text in pages.items()}
    for name in PUBLIC:
        value = getattr(dgpax, name)
        if not isinstance(value, types.ModuleType):
            assert name in headings["dgpax"], name
            continue
        own = {n for n, v in vars(value).items() if getattr(v, "__module__", "").startswith("dgpax") and callable(v)}
        assert {n for n in own if not n.startswith("_")} == headings[name]


def test_pages_have_signatures_and_methods(pages):
    assert "deep_gp(\n" in pages["dgpax"]
    assert ".interval(" in pages["distributions"]
    assert ".cross(x: Float[Array, '*#b N D'], y: Float[Array, '*#b M D'])" in pages["kernels"]
    assert "dataset(x, y, *, weights=None, missing: str = 'error')" in pages["dgpax"]
    assert "`RBF(0.5).on(0) * Matern32(1.0).on(1, 2)`" in pages["kernels"]
    assert "jaxtyping." not in "".join(pages.values())


def test_internal_packages_have_no_page(pages):
    assert not {"cli", "storage", "typing", "conditional"} & set(pages)
