"""Samples of the paper's large sets: signal against background, rectangles, and delays of flights."""

from __future__ import annotations

import time

import jax.numpy as jnp
import jax.random as jr
import numpy as np

import dgpax
from dgpax.data import InMemory
from dgpax.inference import AbstractEngine, Variational
from dgpax.likelihoods import BernoulliProbit
from dgpax.prediction import class_probabilities

from ._dsvi_mnist import build as build_for_images
from ._record import Record

RECTANGLES = "rectangles"
CLASSES = ("higgs_10k", "susy_low8_10k", RECTANGLES)
FLIGHTS = "nycflights13_100k"
TEST_ROWS = 1_000


def flights() -> tuple[dgpax.Dataset, dgpax.Dataset]:
    """90% of the rows to train, the others held out, by chance."""
    whole = dgpax.load(FLIGHTS)
    return dgpax.data.split(dgpax.dataset(whole.x, whole.y), 0.1, jr.key(0))


def run_classes(
    name: str, num_layers: int, num_inducing: int, batch: int, engine: AbstractEngine, labels: Record
) -> Record:
    """Train on the standard split, score on its held-out rows."""
    train, test = dgpax.load(name).split(0)
    model = _model(name, train, num_layers, num_inducing)
    started = time.perf_counter()
    fitted = dgpax.fit(model, InMemory(train, batch), Variational(), engine=engine, progress=False)
    seconds = time.perf_counter() - started
    parts = [test.x[start : start + TEST_ROWS] for start in range(0, test.num_rows, TEST_ROWS)]
    probabilities = jnp.concatenate([class_probabilities(fitted, part) for part in parts])
    scores: Record = {
        "accuracy": float(dgpax.metrics.accuracy(test.y, probabilities)),
        "auc": float(dgpax.metrics.auc(test.y, probabilities)),
        "log_loss": float(dgpax.metrics.log_loss(test.y, probabilities)),
        "bound": float(np.mean(fitted.report.history[-100:])),
        "rejected_steps": fitted.report.rejected_steps,
    }
    print(f"{name}: {scores['accuracy']:.2%}, AUC {scores['auc']:.4f} in {seconds:.0f} s", flush=True)
    return labels | {"kind": "classes", "seconds": seconds} | scores


def _model(name: str, train: dgpax.Dataset, num_layers: int, num_inducing: int) -> dgpax.DeepGP:
    """Images are taken as in MNIST: standard scores of 784 pixels are too far apart for length scales of 2."""
    if name == RECTANGLES:
        return build_for_images(train, num_layers, num_inducing, BernoulliProbit())
    return dgpax.dsvi(train, num_layers, num_inducing, likelihood=BernoulliProbit())
