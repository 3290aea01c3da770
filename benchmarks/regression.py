"""Exact and sparse GP regression against GPflow: `python -m benchmarks.regression --peer-python PATH`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import dgpax
from dgpax.distributions import Gaussian
from dgpax.linalg import default_jitter

from ._record import RESULTS, ROOT, Record, command_line, write
from ._regression_dgpax import build, describe, fit
from ._tables import Column, Published, Table

PEER = ROOT / "benchmarks" / "peers" / "gpflow_regression.py"
MODELS = {
    "exact": "exact",
    "k-means": "sparse, k-means points",
    "variance": "sparse, variance points",
    "bound": "sparse, bound points",
    "learnt": "sparse, learnt points",
}
PEER_MODELS = ("exact", "k-means", "learnt")
SCORES = ("rmse", "log_likelihood", "objective", "steps", "converged", "seconds_cold", "seconds_warm")

_DSVI = "Salimbeni & Deisenroth 2017, Tables 7 and 8"
_STAR = "Lindinger et al. 2020, appendix, table of interpolation results"
_PUBLISHED: tuple[dict[str, Any], ...] = (
    {"dataset": "energy", "model": "sparse, 100 points", "library": _DSVI, "log_likelihood": Published(-1.29, 0.02)},
    {
        "dataset": "energy",
        "model": "sparse, 500 points",
        "library": _DSVI,
        "log_likelihood": Published(-0.63, 0.03),
        "rmse": Published(0.47, 0.02),
    },
    {"dataset": "energy", "model": "sparse, 128 points", "library": _STAR, "log_likelihood": Published(-0.71, 0.03)},
    {"dataset": "concrete", "model": "sparse, 100 points", "library": _DSVI, "log_likelihood": Published(-3.18, 0.02)},
    {
        "dataset": "concrete",
        "model": "sparse, 500 points",
        "library": _DSVI,
        "log_likelihood": Published(-3.09, 0.02),
        "rmse": Published(5.53, 0.12),
    },
    {"dataset": "concrete", "model": "sparse, 128 points", "library": _STAR, "log_likelihood": Published(-3.09, 0.02)},
)

TITLE = "Regression against GPflow"
INTRODUCTION = """\
An RBF kernel with a length scale per column; both libraries start from the same values (standardised data, length
scales √D, variance 1, noise variance 0.1, the same inducing points) and end by their own L-BFGS and its default
tolerance. RMSE and mean test log-likelihood are in the units of y; the objective (log evidence or collapsed bound) is
in standardised units. Cold is the first fit of a fresh process, compilation included and imports not; warm is the
second fit of the same model in that process. Fits take turns on one machine."""
TABLES = (
    Table(
        "Fits",
        "fit",
        ("dataset", "model", "library"),
        (
            Column("rmse", "RMSE", ".3f"),
            Column("log_likelihood", "log-likelihood", ".3f"),
            Column("objective", "objective", ".2f"),
            Column("steps", "steps", ".0f"),
            Column("seconds_cold", "cold, s", ".2f"),
            Column("seconds_warm", "warm, s", ".2f"),
        ),
        _PUBLISHED,
    ),
    Table(
        "Time of GPflow / time of dgpax",
        "speed",
        ("dataset", "model"),
        (Column("ratio_cold", "cold", ".2f"), Column("ratio_warm", "warm", ".2f")),
    ),
    Table(
        "Largest absolute difference from GPflow at the same, fixed hyperparameters",
        "agreement",
        ("dataset", "model"),
        (
            Column("mean", "predictive mean", ".1e"),
            Column("variance", "predictive variance", ".1e"),
            Column("objective", "objective", ".1e"),
        ),
    ),
)


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

    def name(self, model: str) -> Record:
        return {"dataset": self.dataset, "split": self.split, "model": MODELS[model]}


def load(dataset: str, split: int, seed: int, num_inducing: int, *, quick: bool) -> Task:
    """Quick is for trying out: few rows, few points, few steps."""
    train, test = dgpax.load(dataset).split(split)
    if not quick:
        return Task(dataset, split, train, test, num_inducing, seed, None)
    return Task(dataset, split, train.take(jnp.arange(60)), test.take(jnp.arange(20)), 5, seed, 5)


def problem(task: Task, model: dgpax.DeepGP, name: str) -> dict[str, Any]:
    """What a worker is given: the raw data for dgpax; scaled data and starting values for its peer."""
    scaled, layer, scaling = model.to_model_units(task.train), model.layers[0], model.scaling
    assert scaling is not None
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
        "lengthscale": layer.kernel.lengthscale.value,
        "variance": layer.kernel.variance.value,
        "noise_variance": model.likelihood.noise_variance.value,
    }
    if layer.inducing is not None:
        given |= {"locations": layer.inducing.locations.value, "train_locations": layer.inducing.locations.trainable}
    return given if task.max_steps is None else given | {"max_steps": task.max_steps}


def ask(worker: Sequence[str], given: dict[str, Any]) -> dict[str, Any] | None:
    """Run a worker in a fresh process; None, after its complaint is printed, if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "problem.npz"), Path(folder, "answer.json")
        np.savez(source, **{name: np.asarray(value) for name, value in given.items()})
        done = subprocess.run(
            [*worker, str(source), str(target)],
            cwd=ROOT,
            env=environment | {"TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            print(done.stderr[-2000:], file=sys.stderr)
            return None
        return json.loads(target.read_text("utf-8"))


def scored(answer: dict[str, Any] | None, test: dgpax.Dataset) -> Record:
    """The numbers of a fit; all None if it failed. Both libraries' predictions are scored by the same code."""
    if answer is None:
        return dict.fromkeys(SCORES)
    prediction = Gaussian(jnp.asarray(answer["mean"]), jnp.asarray(answer["variance"]))
    accuracy = {
        "rmse": float(dgpax.metrics.rmse(test.y, prediction)),
        "log_likelihood": -float(dgpax.metrics.nlpd(test.y, prediction)),
    }
    return accuracy | {name: answer[name] for name in SCORES if name not in accuracy}


def ratios(theirs: Record, ours: Record) -> Record:
    """Their time over ours, cold and warm."""

    def ratio(name: str) -> float | None:
        numerator, denominator = theirs[name], ours[name]
        if not isinstance(numerator, float) or not isinstance(denominator, float):
            return None
        return numerator / denominator

    return {"ratio_cold": ratio("seconds_cold"), "ratio_warm": ratio("seconds_warm")}


def compare(task: Task, name: str, workers: dict[str, list[str]], versions: dict[str, Any]) -> list[Record]:
    """The fits of all workers, in their order, and the ratio of their times."""
    given = problem(task, build(name, task.train, task.num_inducing, task.seed), name)
    records: dict[str, Record] = {}
    for library, worker in workers.items():
        answer = ask(worker, given)
        if answer is not None and "versions" in answer:
            versions[library] = answer["versions"]
        records[library] = {"kind": "fit", "library": library} | task.name(name) | scored(answer, task.test)
        print(_line(records[library]), flush=True)
    if len(records) < 2:
        return list(records.values())
    speed = {"kind": "speed"} | task.name(name) | ratios(records["GPflow"], records["dgpax"])
    return [records["dgpax"], records["GPflow"], speed]


def agreement(task: Task, name: str, peer: list[str]) -> Record:
    """Largest differences at hyperparameters that are nobody's default, with the same jitter."""
    D = task.train.num_inputs
    start = build(name, task.train, task.num_inducing, task.seed)
    model = dgpax.parameters.set_values(
        start,
        {
            "layers[0].kernel.lengthscale": np.sqrt(D) * np.linspace(0.5, 1.5, D),
            "layers[0].kernel.variance": 1.3,
            "likelihood.noise_variance": 0.05,
        },
    )
    given = problem(task, model, name) | {"max_steps": 0, "jitter": 1.3 * default_jitter(task.num_inducing, float)}
    ours, theirs = describe(fit(model, task.train, 0), task.train, task.test.x), ask(peer, given)
    quantities = ("mean", "variance", "objective")
    if theirs is None:
        return {"kind": "agreement"} | task.name(name) | dict.fromkeys(quantities)
    differences = {q: float(np.max(np.abs(np.subtract(ours[q], theirs[q])))) for q in quantities}
    return {"kind": "agreement"} | task.name(name) | differences


def _line(record: Record) -> str:
    numbers = ", ".join(f"{name} {record[name]:.4g}" for name in SCORES if isinstance(record[name], float))
    return f"{record['dataset']} {record['split']}, {record['model']}, {record['library']}: {numbers or 'failed'}"


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regression", description=__doc__)
    parser.add_argument("--dataset", nargs="+", default=["energy"], help="names of the catalogue")
    parser.add_argument("--splits", nargs="+", type=int, default=[0], help="which standard splits")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--num-inducing", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0, help="of the choice of points")
    parser.add_argument("--peer-python", default=os.environ.get("DGPAX_PEER_PYTHON"), help="has gpflow >= 2.11")
    parser.add_argument("--quick", action="store_true", help="tiny, to try it out; recorded only with --results")
    parser.add_argument("--results", type=Path, help="folder for the result file")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> Path | None:
    """Run, print, and record; the result file, if one was written."""
    chosen, started = _arguments(arguments), time.perf_counter()
    workers = {"dgpax": [sys.executable, "-m", "benchmarks._regression_dgpax"]}
    if chosen.peer_python:
        workers["GPflow"] = [chosen.peer_python, str(PEER)]
    else:
        print("GPflow is skipped: pass --peer-python, or set DGPAX_PEER_PYTHON, to a Python that has gpflow>=2.11.")
    records: list[Record] = []
    versions: dict[str, Any] = {}
    for dataset in chosen.dataset:
        tasks = [load(dataset, split, chosen.seed, chosen.num_inducing, quick=chosen.quick) for split in chosen.splits]
        for turn, (task, name) in enumerate((task, name) for task in tasks for name in chosen.models):
            rivals = workers if name in PEER_MODELS else {"dgpax": workers["dgpax"]}
            in_turn = dict(reversed(rivals.items())) if turn % 2 else rivals
            records += compare(task, name, in_turn, versions)
        if "GPflow" in workers:
            fixed = [name for name in ("exact", "k-means") if name in chosen.models]
            records += [agreement(tasks[0], name, workers["GPflow"]) for name in fixed]
    if chosen.quick and chosen.results is None:
        print("A quick run isn't recorded.")
        return None
    path = write(
        "regression",
        records,
        command=command_line("benchmarks.regression", arguments),
        precision="float64",
        seeds=[chosen.seed],
        seconds=time.perf_counter() - started,
        peers=versions,
        folder=chosen.results or RESULTS,
    )
    print(f"Wrote {path.name}")
    return path


if __name__ == "__main__":
    main(sys.argv[1:])
