"""Imports point one way, and the one safe Cholesky is the only one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import dgpax

PACKAGE = Path(dgpax.__file__).parent
ORDER = [
    "typing", "errors", "settings", "programs", "storage", "distributed", "parameters", "linalg", "distributions",
    "metrics", "data", "kernels", "means", "inducing", "covariances", "conditional", "warps", "expectations",
    "likelihoods", "layers", "model", "posteriors", "propagate", "uncertain", "fits", "objectives", "inference",
    "architectures", "prediction", "stride", "alignment", "recipes", "estimators", "io", "design", "sensitivity",
    "interop", "plot", "report", "cli",
]  # fmt: skip
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def _noun(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imported_nouns(path: Path):
    depth = len(path.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            yield from [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("dgpax"):
            yield from (node.module or "").split(".")[1:2]


def test_every_noun_has_its_place():
    assert {_noun(path) for path in FILES} == set(ORDER)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_upwards(path):
    own = _noun(path)
    for noun in _imported_nouns(path):
        if noun in ORDER:
            assert ORDER.index(noun) <= ORDER.index(own), f"{path.name} of {own} imports {noun}"


def test_only_one_file_factorises_and_solves():
    pattern = re.compile(r"linalg\.(cholesky|cho_factor|triangular_solve|solve_triangular)\b")
    users = {path.name for path in FILES if pattern.search(path.read_text())}
    assert users == {"_lapack.py"}
    importers = {path.name for path in FILES if "_lapack import" in path.read_text()}
    assert importers == {"_cholesky.py"}


def test_files_stay_short():
    long = {path.name: lines for path in FILES if (lines := len(path.read_text().splitlines())) > 400}
    assert not long


def test_nothing_unsafe_is_used():
    pattern = re.compile(r"\b(import pickle|from pickle|allow_pickle=True|eval\(|exec\()")
    assert not [path.name for path in FILES if pattern.search(path.read_text())]
