"""Draw docs/images/step.png: `python docs/make_step.py`."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dgpax

IMAGE = Path(__file__).parent / "images" / "step.png"


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(200, 1))
    data = dgpax.dataset(x, (x > 0) + 0.02 * rng.normal(size=x.shape))
    fits = {
        "one layer": dgpax.fit(dgpax.gp_regression(data), data),
        "two layers": dgpax.fit(dgpax.deep_gp(data, num_layers=2), data, "variational"),
    }
    at = np.linspace(-1.2, 1.2, 400)[:, None]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for panel, (name, fitted) in zip(axes, fits.items(), strict=True):
        prediction = dgpax.predict(fitted, at)
        low, high = prediction.quantile(0.05), prediction.quantile(0.95)
        panel.fill_between(at[:, 0], low[:, 0], high[:, 0], alpha=0.3, lw=0, label="90% interval")
        panel.plot(at[:, 0], prediction.mean[:, 0], label="mean")
        panel.plot(data.x[:, 0], data.y[:, 0], ".", color="0.2", ms=3, label="data")
        panel.set(title=name, xlabel="x")
    axes[0].set_ylabel("y")
    axes[1].legend(loc=(0.53, 0.4), frameon=False)
    figure.savefig(IMAGE, dpi=150)


if __name__ == "__main__":
    main()
