"""What the libraries of the regression benchmark are asked, and how."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import dgpax

from ._record import ROOT, Record
from ._regression_dgpax import build

MODELS = ("exact", "k-means", "variance", "bound", "learnt")


@dataclass(frozen=True)
class Task:
    """One training and one test set. `max_steps` None leaves each library its own limit."""

    dataset: str
    split: int
    train: dgpax.Dataset
    test: dgpax.Dataset
    num_inducing: int
    seed: int
    max_steps: int | None

    @classmethod
    def load(cls, dataset: str, split: int, num_inducing: int, seed: int, *, quick: bool) -> Task:
        """Quick is for trying out: few rows, few points, few steps."""
        train, test = dgpax.load(dataset).split(split)
        if quick:
            return cls(dataset, split, train.take(jnp.arange(60)), test.take(jnp.arange(20)), 5, seed, 5)
        return cls(dataset, split, train, test, num_inducing, seed, None)

    def name(self, model: str) -> Record:
        """How records of this task are found again."""
        label = "exact" if model == "exact" else f"sparse, {self.num_inducing} {model} points"
        return {"dataset": self.dataset, "split": self.split, "model": label}

    def start(self, model: str) -> dgpax.DeepGP:
        """The model at the starting values that all libraries share."""
        return build(model, self.train, self.num_inducing, self.seed)


def problem(task: Task, name: str, model: dgpax.DeepGP) -> dict[str, Any]:
    """What a worker is given: the raw data for dgpax; scaled data and starting values for its peer."""
    scaled, scaling = model.to_model_units(task.train), model.scaling
    assert scaling is not None
    values = {path: parameter.value for path, parameter in dgpax.parameters.find(model).items()}
    given = {
        "model": name,
        "seed": task.seed,
        "num_inducing": task.num_inducing,
        "x": task.train.x,
        "y": task.train.y,
        "x_test": task.test.x,
        "scaled_x": scaled.x,
        "scaled_y": scaled.y,
        "scaled_x_test": model.inputs_to_model_units(task.test.x),
        "y_mean": scaling.y_mean,
        "y_scale": scaling.y_scale,
        "lengthscale": values["layers[0].kernel.lengthscale"],
        "variance": values["layers[0].kernel.variance"],
        "noise_variance": values["likelihood.noise_variance"],
    }
    if name != "exact":
        given |= {"locations": values["layers[0].inducing.locations"], "train_locations": name == "learnt"}
    return given if task.max_steps is None else given | {"max_steps": task.max_steps}


def ask(worker: Sequence[str], given: dict[str, Any]) -> dict[str, Any] | None:
    """Run a worker in a fresh process without a compilation cache; None, its complaint printed, if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in given.items()}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "problem.npz"), Path(folder, "answer.json")
        np.savez(source, **arrays)
        done = subprocess.run(
            [*worker, str(source), str(target)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            print(done.stderr[-2000:], file=sys.stderr)
            return None
        return json.loads(target.read_text("utf-8"))
