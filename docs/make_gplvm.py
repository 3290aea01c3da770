"""Draws docs/images/gplvm.png, the picture of docs/gplvm.md: python docs/make_gplvm.py (half a minute on one core)."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import dgpax
from dgpax.inference import NaturalGradient

SIDES = np.array([-1.0, 1.0])
COLOURS = ["#2f6db3", "#d9772b", "#3a9c62", "#b5446e", "#6b5b95"]


def main() -> None:
    """Fit, score both embeddings, draw."""
    images, digits = load_digits(n_class=5, return_X_y=True)
    images, digits = np.asarray(images)[:400], np.asarray(digits)[:400]
    start = dgpax.gplvm(images, num_latents=2, num_inducing=30)
    fitted = dgpax.fit(*start, engine=NaturalGradient(max_steps=400))
    found = dgpax.latent_positions(fitted, start.data)
    linear = PCA(2).fit_transform(images)

    figure, axes = plt.subplots(1, 2, figsize=(10.5, 5.2), layout="constrained")
    figure.suptitle("Handwritten digits in two dimensions: the GP-LVM, which never saw the labels, keeps classes apart")
    _panel(axes[0], linear, digits, "Principal components", "component")
    _panel(axes[1], np.asarray(found.mean), digits, "Bayesian GP-LVM", "latent dimension")
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, title="digit", loc="outside right center", frameon=False, markerscale=1.6)
    figure.savefig(Path(__file__).parent / "images" / "gplvm.png", dpi=130)


def _panel(ax, positions: np.ndarray, digits: np.ndarray, title: str, axis: str) -> None:
    for digit, colour in enumerate(COLOURS):
        chosen = positions[digits == digit]
        ax.scatter(*chosen.T, s=16, color=colour, alpha=0.75, linewidths=0, label=str(digit))
    accuracy = cross_val_score(KNeighborsClassifier(5), positions, digits, cv=10).mean()
    print(f"{title}: accuracy of the 5 nearest neighbours {accuracy:.3f}")
    ax.set_title(f"{title}: 5 nearest neighbours name {accuracy:.0%} of the digits", fontsize=10)
    ax.set_xlabel(f"{axis} 1")
    ax.set_ylabel(f"{axis} 2")
    middle, reach = (positions.min(axis=0) + positions.max(axis=0)) / 2, 0.54 * np.ptp(positions, axis=0).max()
    ax.set(aspect="equal", xlim=middle[0] + reach * SIDES, ylim=middle[1] + reach * SIDES)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.6)


if __name__ == "__main__":
    main()
