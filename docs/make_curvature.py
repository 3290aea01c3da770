"""The picture of variances between inducing points in docs/compositional.md: `python docs/make_curvature.py`.

The other one on that page is made by `python -m benchmarks.compositional --pictures docs/images`.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from dgpax import plot

IMAGE = Path(__file__).parent / "images" / "curvature.png"

if __name__ == "__main__":
    plot.variance_curvature()
    plt.savefig(IMAGE, dpi=110)
