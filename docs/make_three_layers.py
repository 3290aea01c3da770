"""Draw docs/images/compositional-sine.png and -identity.png, after Figures E1-E6 of CU, by the benchmark's own fits:
`python docs/make_three_layers.py`. Some three minutes on one core."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # benchmarks isn't installed

from benchmarks import compositional  # noqa: E402


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        images = str(ROOT / "docs" / "images")
        words = ("--parts", "three-layers", "--steps", "3000", "--pictures", images, "--results", folder)
        compositional.main([*words, "--posteriors", *compositional.SHOWN])


if __name__ == "__main__":
    main()
