"""A convolutional against an RBF kernel on images: `python -m benchmarks.convolutional [--dataset mnist]`.

Rectangles is for a CPU, MNIST for one GPU. The files are read from the folder DGPAX_DATA; nothing is downloaded.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import optax

import dgpax
from dgpax import DeepGP, GPLayer
from dgpax.data import InMemory
from dgpax.inducing import Patches, Points
from dgpax.inference import NaturalGradient
from dgpax.kernels import RBF, Convolutional
from dgpax.likelihoods import AbstractLikelihood, BernoulliProbit, Softmax
from dgpax.parameters import Real
from dgpax.prediction import class_probabilities

from ._record import RESULTS, Record, command_line, write
from ._tables import Column, Table

IMAGE = (28, 28)
KERNELS = ("rbf", "convolutional")
_WILK = "van der Wilk et al. 2017"
TITLE = "Convolutional kernels on images"
INTRODUCTION = """\
Sparse variational GP classification of 28 x 28 images with inducing points under an RBF kernel, and with inducing
patches under a convolutional one, weighted if it has a trained weight per patch. Natural gradients for q(u), Adam for
the rest, inducing variables included, except points that are all of the training images. Rectangles: 1,200 training
and 50,000 test images, probit likelihood. MNIST: 60,000 and 10,000, softmax likelihood. Error is the share of test
images with a wrong label, log loss the mean of −log p(label)."""
TABLES = (
    Table(
        title="Test set",
        kind="images",
        names=("dataset", "model", "source"),
        columns=(
            Column("error", "error", ".2%"),
            Column("log_loss", "log loss", ".4f"),
            Column("objective", "bound", ".0f"),
            Column("steps", "steps", ".0f"),
            Column("seconds", "fit, s", ".0f"),
        ),
        published=(
            {"dataset": "rectangles", "model": "RBF", "source": _WILK, "error": "5.0%"},
            {"dataset": "rectangles", "model": "convolutional", "source": _WILK, "error": "1.7%"},
            {"dataset": "rectangles", "model": "convolutional, weighted", "source": _WILK, "error": "1.4%"},
            {"dataset": "mnist", "model": "RBF", "source": "literature", "error": "1.6% to 2.1%"},
            {"dataset": "mnist", "model": "convolutional, weighted", "source": "literature", "error": "1.1% or less"},
        ),
    ),
)


class Setting(NamedTuple):
    """How one model is made and trained."""

    num_inducing: int
    lengthscale: float
    variance: float
    patch: int | None = None
    weights: float | None = None
    batch_size: int = 200
    max_steps: int = 200
    natural_rate: float = 0.3
    learning_rate: float = 0.03

    @property
    def label(self) -> str:
        """The model's name in tables."""
        if self.patch is None:
            return f"RBF, {self.num_inducing} points"
        kind = "convolutional" if self.weights is None else "convolutional, weighted"
        return f"{kind}, {self.num_inducing} patches of {self.patch} x {self.patch}"


SETTINGS = {
    ("rectangles", "rbf"): Setting(1200, 5.0, 10.0, batch_size=400, max_steps=75, natural_rate=0.4, learning_rate=0.1),
    ("rectangles", "convolutional"): Setting(35, 1.0, 300.0, patch=3, batch_size=100, max_steps=150),
    ("mnist", "rbf"): Setting(750, 8.0, 10.0, batch_size=500, max_steps=100_000, natural_rate=0.1, learning_rate=0.01),
    ("mnist", "convolutional"): Setting(
        750, 2.0, 300.0, patch=5, weights=1.0, max_steps=100_000, natural_rate=0.1, learning_rate=0.01
    ),
}


def load(dataset: str, *, quick: bool) -> tuple[dgpax.Dataset, dgpax.Dataset]:
    """Training and test images with pixels in [0, 1]; a few of each for a quick run."""
    parts = dgpax.load(dataset).split(0)
    top = 255.0 if dataset == "mnist" else 1.0
    train, test = (dataclasses.replace(part, x=part.x / top) for part in parts)
    return (train.take(jnp.arange(60)), test.take(jnp.arange(40))) if quick else (train, test)


def build(setting: Setting, train: dgpax.Dataset, likelihood: AbstractLikelihood, seed: int) -> DeepGP:
    """The model at its starting values, with points or patches of the training images; all images stay as they are."""
    base, num_latents = RBF(setting.lengthscale, setting.variance), likelihood.num_latents(1)
    if setting.patch is None:
        rows = np.random.default_rng(seed).choice(train.num_rows, setting.num_inducing, replace=False)
        locations = Real(train.x[rows], trainable=len(rows) < train.num_rows)
        return DeepGP(GPLayer(base, num_latents, inducing=Points(locations)), likelihood)
    kernel = Convolutional(base, IMAGE, (setting.patch, setting.patch), weights=setting.weights)
    patches = Patches.from_images(kernel, train.x, setting.num_inducing, seed=seed)
    return DeepGP(GPLayer(kernel, num_latents, inducing=patches), likelihood)


def measure(dataset: str, kernel: str, *, seconds: float | None, seed: int, quick: bool) -> Record:
    """Train one model and score it on the test set."""
    train, test = load(dataset, quick=quick)
    setting = SETTINGS[dataset, kernel]
    if quick:
        setting = setting._replace(num_inducing=8, batch_size=30, max_steps=5)
    likelihood = Softmax(10) if dataset == "mnist" else BernoulliProbit()
    engine = NaturalGradient(
        natural_rate=setting.natural_rate,
        ramp_steps=50,
        optimiser=optax.adam(setting.learning_rate),
        max_steps=setting.max_steps,
        steps_per_call=min(25, setting.max_steps),
    )
    model = build(setting, train, likelihood, seed)
    fitted = dgpax.fit(
        model, InMemory(train, setting.batch_size), "variational", engine=engine, seed=seed, max_seconds=seconds
    )
    probabilities = class_probabilities(fitted, test.x)
    record: Record = {
        "kind": "images",
        "dataset": dataset,
        "model": setting.label,
        "source": "dgpax",
        "error": 1.0 - float(dgpax.metrics.accuracy(test.y, probabilities)),
        "log_loss": float(dgpax.metrics.log_loss(test.y, probabilities)),
        "objective": fitted.report.objective_end,
        "steps": fitted.report.steps,
        "seconds": fitted.report.seconds,
    }
    print(", ".join(f"{name} {value}" for name, value in record.items()), flush=True)
    return record


def main(arguments: Sequence[str]) -> Path | None:
    """Run, print, and record; the result file, if one was written."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.convolutional", description=__doc__)
    parser.add_argument("--dataset", choices=("rectangles", "mnist"), default="rectangles")
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=KERNELS)
    parser.add_argument("--seconds", type=float, help="time limit of each fit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="tiny, to try it out; recorded only with --results")
    parser.add_argument("--results", type=Path, help="folder for the result file")
    chosen, started = parser.parse_args(arguments), time.perf_counter()
    records = [
        measure(chosen.dataset, kernel, seconds=chosen.seconds, seed=chosen.seed, quick=chosen.quick)
        for kernel in chosen.kernels
    ]
    if chosen.quick and chosen.results is None:
        print("A quick run isn't recorded.")
        return None
    path = write(
        "convolutional",
        records,
        command=command_line("benchmarks.convolutional", arguments),
        precision="float64",
        seeds=[chosen.seed],
        seconds=time.perf_counter() - started,
        peers={},
        folder=chosen.results or RESULTS,
        part=chosen.dataset,
    )
    print(f"Wrote {path.name}")
    return path


if __name__ == "__main__":
    main(sys.argv[1:])
