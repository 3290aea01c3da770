"""Draw docs/images/design.png: `python docs/make_design.py`."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dgpax
from dgpax.design import Study

IMAGE = Path(__file__).parent / "images" / "design.png"
BOX = {"speed": (0.0, 1.0), "angle": (0.0, 1.0)}
NUM_RUNS = 40


def stall(speed, angle):
    """Lift that breaks off along a curve."""
    attached = 1.0 / (1.0 + np.exp(60.0 * (angle - 0.45 - 0.35 * speed**2)))
    return attached * (0.3 + angle) * (0.5 + speed)


def studied(**words) -> Study:
    """Ten runs of a Latin hypercube, and the others five at a time."""
    study = Study(BOX, "alc", num_initial=10, **words)
    while study.num_runs < NUM_RUNS:
        rows = study.ask(min(5, NUM_RUNS - study.num_runs))
        study.tell(rows, [stall(**row) for row in rows])
    return study


def main() -> None:
    studies = {"one layer": studied(inference="exact"), "two layers": studied(max_steps=600)}
    axis = np.linspace(0.0, 1.0, 80)
    speed, angle = np.meshgrid(axis, axis, indexing="ij")
    rows, truth = np.stack([speed.ravel(), angle.ravel()], axis=1), stall(speed, angle)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
    shown = axes[0].pcolormesh(axis, axis, truth.T, rasterized=True)
    axes[0].set(title="the simulator", xlabel="speed", ylabel="angle")
    figure.colorbar(shown, ax=axes[0], label="lift")
    for panel, (name, study) in zip(axes[1:], studies.items(), strict=True):
        mean = np.asarray(dgpax.predict_latent(study.fitted(), rows).mean).reshape(80, 80)
        rmse = np.sqrt(np.mean((mean - truth) ** 2))
        image = panel.pcolormesh(axis, axis, np.abs(mean - truth).T, cmap="magma_r", vmin=0, vmax=0.4, rasterized=True)
        panel.plot(study.x[:10, 0], study.x[:10, 1], "s", color="0.6", ms=4, label="first runs")
        panel.plot(study.x[10:, 0], study.x[10:, 1], "o", color="tab:blue", ms=4, label="suggested")
        panel.set(title=f"{name}: RMSE {rmse:.3f}", xlabel="speed")
        print(name, f"{rmse:.4f}")
    axes[2].legend(loc="lower left", fontsize=7)
    figure.colorbar(image, ax=axes[1:], label="error")
    figure.savefig(IMAGE, dpi=150)


if __name__ == "__main__":
    main()
