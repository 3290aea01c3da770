"""How the documentation is built: `sphinx-build -W docs docs/_build/html`."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

import make_api  # noqa: E402

project = "dgpax"
author = copyright = "The dgpax developers"
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "dgpax"
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["wide.css"]
nitpicky = True


def setup(app) -> None:
    """The pages of the interface are written from the code before they are read."""
    app.connect("builder-inited", lambda _: make_api.write(DOCS / "api"))
