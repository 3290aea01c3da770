"""The site's first page, as browsers show it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_report import screenshot

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.browser
def test_the_first_page_and_a_tutorial_fit_phones_and_desktops(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-q", str(DOCS), str(tmp_path)]
    subprocess.run(command, check=True, timeout=600)
    for page in ("index.html", "tutorials/simulator.html"):
        for width in (390, 1280):
            picture, log = screenshot(tmp_path, width, "light", page)
            assert "CONSOLE" not in log and picture.shape[1] == width
            assert np.ptp(picture[200:, -2:], axis=0).max() < 2.0  # nothing reaches beyond the edge
