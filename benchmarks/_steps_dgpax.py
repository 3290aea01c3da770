"""dgpax in the steps benchmark: `python -m benchmarks._steps_dgpax problem.npz answer.json`.

What is timed is the loop of `dgpax.fit` itself, one compiled call of several steps after another: the check that a
step is finite and the objectives' way to the host are in the time.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import dgpax
from dgpax.inducing import Points
from dgpax.inference import AbstractEngine, AbstractStopping, Gradient, NeverStop, flat_adam
from dgpax.kernels import RBF
from dgpax.likelihoods import GaussianNoise
from dgpax.means import Identity, Zero


class Clock(AbstractStopping):
    """Stops nothing; writes down when it is asked, which is after every compiled call."""

    def __init__(self):
        self.readings: list[float] = []

    def score(self, step, target):
        self.readings.append(time.perf_counter())
        return None

    def done(self):
        return False


def build(given) -> dgpax.DeepGP:
    """Identity means in the inner layers, none in the last; kernel and inducing points shared by a layer's outputs."""
    locations, num_layers = jnp.asarray(given["locations"]), int(given["num_layers"])
    width = locations.shape[1]
    kernel = RBF(jnp.full(width, float(given["lengthscale"])), float(given["variance"]))
    inner = dgpax.GPLayer(kernel, width, Identity(), Points(locations))
    last = dgpax.GPLayer(kernel, given["y"].shape[1], Zero(), Points(locations))
    return dgpax.DeepGP([inner] * (num_layers - 1) + [last], GaussianNoise(float(given["noise_variance"])))


def train(model: dgpax.DeepGP, datasets: list[dgpax.Dataset], engine: AbstractEngine, clock: Clock) -> dgpax.Fit:
    """The fit, or the first of many that are trained together."""
    if len(datasets) == 1:
        return dgpax.fit(model, datasets[0], "variational", engine=engine, stopping=clock, progress=False)
    together = dgpax.fit_many(
        [model] * len(datasets),
        datasets,
        "variational",
        engine=engine,
        seeds=range(len(datasets)),
        stopping=lambda index: clock if index == 0 else NeverStop(),
        progress=False,
    )
    return together[0]


def datasets_of(given) -> list[dgpax.Dataset]:
    """The rows of every model."""
    parts = zip(*(np.split(given[name], int(given["num_models"])) for name in ("x", "y")), strict=True)
    return [dgpax.dataset(x, y) for x, y in parts]


def main(problem: Path, answer: Path) -> None:
    given, clock = np.load(problem), Clock()
    num_runs, steps = int(given["num_runs"]), int(given["steps"])
    engine = Gradient(optimiser=flat_adam(float(given["rate"])))
    engine = replace(engine, max_steps=num_runs * engine.steps_per_call)
    report = train(build(given), datasets_of(given), engine, clock).report
    result = {
        "milliseconds": (1e3 * np.diff(clock.readings[1:]) / engine.steps_per_call).tolist(),
        "elbo_start": report.history[0] / report.num_rows,
        "elbo_end": report.history[num_runs * steps - 1] / report.num_rows,
        "device": jax.default_backend(),
    }
    answer.write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
