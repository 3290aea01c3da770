"""The pages of docs/ say what is true: their Python runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dgpax.covariances import Kuf, Kuu

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
PAGES = [
    path
    for path in [
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "docs/tutorials").glob("*.md")),
        ROOT / "README.md",
    ]
    if "```python" in path.read_text()
]


@pytest.fixture
def tables_restored():
    """Rules that a page adds are for that page only."""
    kept = [(table, list(table.known)) for table in (Kuu, Kuf)]
    yield
    for table, known in kept:
        table.known[:] = known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page, tables_restored):
    code = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL))
    exec(compile(code, str(page), "exec", dont_inherit=True), {"__name__": page.stem})  # noqa: S102
