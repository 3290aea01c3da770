"""The list of bad inputs is complete: shared/notes/reliability.md, section 2.5, cases 1 to 30."""

from __future__ import annotations

import re
from pathlib import Path


def test_every_case_has_a_test():
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert {int(number) for number in re.findall(r"^def test_case_(\d\d)_", text, re.MULTILINE)} == set(range(1, 31))
