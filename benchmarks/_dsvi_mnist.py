"""MNIST as in section 5 of DSVI: robust-max, 100 inducing points, inner layers of width 30."""

from __future__ import annotations

import time

import jax.numpy as jnp
import numpy as np

import dgpax
from dgpax import DeepGP, GPLayer
from dgpax.data import InMemory
from dgpax.inducing import Points, k_means
from dgpax.inference import Gradient, Variational
from dgpax.kernels import RBF, White
from dgpax.likelihoods import AbstractLikelihood, RobustMax
from dgpax.means import linear_map
from dgpax.parameters import Positive
from dgpax.prediction import class_probabilities

from ._record import Record

NAME = "mnist"
NUM_CLASSES = 10
WIDTH = 30
BATCH = 5_000
TEST_ROWS = 1_000
SEED = 0


def run(num_layers: int, num_steps: int, num_inducing: int, dtype: np.dtype) -> Record:
    """Train on the 60,000 images, score on the 10,000."""
    train, test = (images(part, dtype) for part in dgpax.load(NAME).split(0))
    model = build(train, num_layers, num_inducing, RobustMax(NUM_CLASSES))
    started = time.perf_counter()
    engine = Gradient(max_steps=num_steps, steps_per_call=min(200, num_steps))
    fitted = dgpax.fit(model, InMemory(train, BATCH), Variational(), engine=engine, seed=SEED, progress=False)
    seconds = time.perf_counter() - started
    parts = [test.x[start : start + TEST_ROWS] for start in range(0, test.num_rows, TEST_ROWS)]
    probabilities = jnp.concatenate([class_probabilities(fitted, part) for part in parts])
    record: Record = {
        "kind": "images",
        "dataset": NAME,
        "layers": num_layers,
        "by": "dgpax, Adam 0.01" + ("" if dtype == np.float64 else f", {dtype}"),
        "accuracy": float(dgpax.metrics.accuracy(test.y, probabilities)),
        "log_loss": float(dgpax.metrics.log_loss(test.y, probabilities)),
        "bound": float(np.mean(fitted.report.history[-100:])),
        "steps": num_steps,
        "seconds": seconds,
        "rejected_steps": fitted.report.rejected_steps,
    }
    print(f"{NAME} L={num_layers}: {record['accuracy']:.2%} in {seconds:.0f} s", flush=True)
    return record


def images(part: dgpax.Dataset, dtype: np.dtype) -> dgpax.Dataset:
    """Pixels in [0, 1]; nothing else is done to them."""
    return dgpax.dataset(np.asarray(part.x, dtype) / dtype.type(255), np.asarray(part.y, dtype))


def build(train: dgpax.Dataset, num_layers: int, num_inducing: int, likelihood: AbstractLikelihood) -> DeepGP:
    """The values of the paper's appendix, with one length scale per layer."""
    x, z = train.x, k_means(train.x, num_inducing, SEED)
    kernel = RBF(jnp.asarray(2.0, x.dtype), jnp.asarray(2.0, x.dtype))
    between = White(Positive(jnp.asarray(1e-5, x.dtype), floor=1e-6))
    layers = []
    for _ in range(num_layers - 1):
        mean = linear_map(x, WIDTH)
        layers.append(GPLayer(kernel + between, WIDTH, mean, Points(z)))
        x, z = mean(x), mean(z)
    layers.append(GPLayer(kernel, likelihood.num_latents(1), inducing=Points(z)))
    return DeepGP(tuple(layers), likelihood)
