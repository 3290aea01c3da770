"""Draw docs/images/stride_fashion.png from the result files: `python docs/make_stride_fashion.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # benchmarks isn't installed

from benchmarks._stride_large import PUBLISHED  # noqa: E402

IMAGE = ROOT / "docs" / "images" / "stride_fashion.png"
INDUCING = (25, 50, 75, 100, 125)
MODELS = {"sparse GP": "C1", "STRIDE, residual, sparse": "C0"}


def main() -> None:
    files = (ROOT / "benchmarks" / "results").glob("stride-fashion-*.json")
    records = [record for path in files for record in json.loads(path.read_text("utf-8"))["records"]]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
    for model, colour in MODELS.items():
        of_model = {m: [r for r in records if (r["model"], r["inducing"]) == (model, m)] for m in INDUCING}
        errors = np.array([[record["smse"] for record in of_model[m]] for m in INDUCING])
        left.fill_between(INDUCING, errors.min(axis=1), errors.max(axis=1), color=colour, alpha=0.25, lw=0)
        left.plot(INDUCING, errors.mean(axis=1), "o-", color=colour, label=f"{model}: dgpax, our features")
        times = [np.mean([record["seconds_predict"] for record in of_model[m]]) for m in INDUCING]
        right.plot(INDUCING, times, "o-", color=colour, label=model)
    for model, colour in (("sparse GP", "C1"), ("STRIDE", "C0")):
        published = [float(error) for error in PUBLISHED[model]]
        left.plot(INDUCING, published, "s--", color=colour, mfc="none", lw=1, label=f"{model}: paper, its own features")
    left.set(xlabel="inducing points", ylabel="SMSE", xticks=INDUCING, ylim=(0.15, 0.36))
    right.set(xlabel="inducing points", ylabel="seconds to predict 7,000 rows", xticks=INDUCING, ylim=(0, None))
    left.legend(frameon=False, fontsize="small")
    right.legend(frameon=False, fontsize="small")
    figure.savefig(IMAGE, dpi=120)


if __name__ == "__main__":
    main()
