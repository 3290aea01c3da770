"""Draw docs/images/covariance.png: `python docs/make_covariance.py`, about a minute."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

import dgpax
from dgpax.inference import NaturalGradient, Variational

IMAGE = Path(__file__).parent / "images" / "covariance.png"
FAMILIES = ("stripes-and-arrow", "fully-coupled")
NUM_STEPS = 1_500


def main() -> None:
    train, _ = dgpax.load("energy").split(0)
    model = dgpax.star(train, num_layers=3, num_inducing=16, width=3)
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
    for ax, family in zip(axes, FAMILIES, strict=True):
        engine = NaturalGradient(max_steps=NUM_STEPS)
        fitted = dgpax.fit(model, train, Variational(family), engine=engine, progress=False)
        dgpax.plot.covariance_blocks(fitted, ax=ax).set_title(family)
        print(family, fitted.report, dgpax.prediction.layer_correlations(fitted), sep="\n")
    figure.savefig(IMAGE, dpi=150)


if __name__ == "__main__":
    main()
