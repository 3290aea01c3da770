"""Draw docs/images/tutorial-*.png by running the tutorials: `python docs/make_tutorials.py`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent


def main(words: list[str]) -> None:
    pages = sorted((DOCS / "tutorials").glob("*.md"))
    for page in [page for page in pages if not words or page.stem in words]:
        code = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL))
        names: dict = {"__name__": page.stem}
        exec(compile(code, str(page), "exec", dont_inherit=True), names)  # noqa: S102 - our own pages
        names["figure"].savefig(DOCS / "images" / f"tutorial-{page.stem}.png", dpi=110)


if __name__ == "__main__":
    main(sys.argv[1:])
