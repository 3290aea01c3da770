"""Draw docs/images/stride.png, after Figure 1 of the STRIDE paper: `python docs/make_stride.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dgpax
from dgpax import metrics
from dgpax.kernels import Matern32
from dgpax.stride import Injective, Schedule, Stride, initial_gp

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # benchmarks isn't installed

from benchmarks._stride_small import jumps  # noqa: E402

IMAGE = ROOT / "docs" / "images" / "stride.png"
NOISE = 0.02


def main() -> None:
    x, at = np.linspace(0, 1, 200)[:, None], np.linspace(0, 1, 1000)[:, None]
    truth = jumps(at[:, 0])[:, None]
    data = dgpax.dataset(x, jumps(x[:, 0]) + NOISE * np.random.default_rng(0).normal(size=200))
    known = {"kernel": Matern32(), "noise_variance": NOISE**2}
    exact = initial_gp(data, None, **known)
    schedule = Schedule(num_candidates=200, num_updates=20)
    deep = dgpax.fit(Injective(2), data, Stride(20, 10, schedule=schedule, **known), progress=False)
    panels = {
        "GP, 200 rows": dgpax.predict(exact.fitted, at),
        "sparse GP, 20 inducing points": dgpax.predict(deep.initial.fitted, at),
        "STRIDE, three layers, 20 inducing points": dgpax.predict(deep, at),
    }
    chosen = [None, deep.initial.rows, deep.inducing_rows]
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), sharey=True, layout="constrained")
    for panel, (name, prediction), rows in zip(axes, panels.items(), chosen, strict=True):
        low, high = (np.asarray(prediction.quantile(p))[:, 0] for p in (0.025, 0.975))
        panel.fill_between(at[:, 0], low, high, alpha=0.3, lw=0, label="95% interval")
        panel.plot(at[:, 0], truth[:, 0], color="0.3", lw=1, label="truth")
        panel.plot(at[:, 0], prediction.mean[:, 0], lw=1.2, label="mean")
        if rows is not None:
            panel.plot(x[np.asarray(rows), 0], np.full(len(rows), -1.45), "k+", ms=6, label="inducing points")
        panel.set(title=f"{name}\nSMSE {float(metrics.smse(truth, prediction)):.4f}", xlabel="x", ylim=(-1.6, 1.6))
    figure.legend(*axes[-1].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(IMAGE, dpi=150)


if __name__ == "__main__":
    main()
