"""Exact and sparse GP regression against GPflow: `python -m benchmarks.regression --peer-python PATH`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import dgpax
from dgpax.distributions import Gaussian
from dgpax.linalg import default_jitter

from ._record import RESULTS, ROOT, Record, command_line, write
from ._regression_dgpax import describe, fit
from ._regression_task import MODELS, Task, ask, problem
from ._tables import Column, Table

PEER = ROOT / "benchmarks" / "peers" / "gpflow_regression.py"
PEER_MODELS = ("exact", "k-means", "learnt")
FIXED_MODELS = ("exact", "k-means")
SCORES = ("rmse", "log_likelihood", "objective", "steps", "converged", "seconds_cold", "seconds_warm")
QUANTITIES = ("mean", "variance", "objective")

_DSVI = "Salimbeni & Deisenroth 2017, Tables 7 and 8 (20 splits)"
_STAR = "Lindinger et al. 2020, Table S2 (10 splits)"
TITLE = "Regression against GPflow"
INTRODUCTION = """\
An RBF kernel with a length scale per column; both libraries start from the same values (standardised data, length
scales √D, variance 1, noise variance 0.1, the same inducing points) and end by their own L-BFGS with its default
tolerance. RMSE and mean test log-likelihood are in the units of y; the objective (log evidence or collapsed bound) is
in standardised units. Cold is the first fit of a fresh process, compilation included and imports not; warm is the
second fit of the same model in that process. dgpax's time includes the posterior, GPflow's is its optimiser's alone.
The libraries take turns on one machine. Published numbers are from other splits and other numbers of points."""
TABLES = (
    Table(
        title="Fits",
        kind="fit",
        names=("dataset", "model", "library"),
        columns=(
            Column("rmse", "RMSE", ".3f"),
            Column("log_likelihood", "log-likelihood", ".3f"),
            Column("objective", "objective", ".2f"),
            Column("steps", "steps", ".0f"),
            Column("converged", "converged", ".0%"),
            Column("seconds_cold", "cold, s", ".2f"),
            Column("seconds_warm", "warm, s", ".2f"),
        ),
        published=(
            {"dataset": "energy", "model": "SGP, 100 points", "library": _DSVI, "log_likelihood": "-1.29 ± 0.02"},
            {
                "dataset": "energy", "model": "SGP, 500 points", "library": _DSVI,
                "log_likelihood": "-0.63 ± 0.03", "rmse": "0.47 ± 0.02",
            },
            {"dataset": "energy", "model": "SGP, 128 points", "library": _STAR, "log_likelihood": "-0.71 ± 0.03"},
            {"dataset": "concrete", "model": "SGP, 100 points", "library": _DSVI, "log_likelihood": "-3.18 ± 0.02"},
            {
                "dataset": "concrete", "model": "SGP, 500 points", "library": _DSVI,
                "log_likelihood": "-3.09 ± 0.02", "rmse": "5.53 ± 0.12",
            },
            {"dataset": "concrete", "model": "SGP, 128 points", "library": _STAR, "log_likelihood": "-3.09 ± 0.02"},
        ),
    ),
    Table(
        title="Time of GPflow over time of dgpax",
        kind="speed",
        names=("dataset", "model"),
        columns=(Column("ratio_cold", "cold", ".2f"), Column("ratio_warm", "warm", ".2f")),
    ),
    Table(
        title="Largest absolute difference from GPflow at the same fixed hyperparameters",
        kind="agreement",
        names=("dataset", "model"),
        columns=(
            Column("mean", "predictive mean", ".1e"),
            Column("variance", "predictive variance", ".1e"),
            Column("objective", "objective", ".1e"),
        ),
    ),
)  # fmt: skip


def scored(answer: Mapping[str, Any] | None, test: dgpax.Dataset) -> Record:
    """The numbers of a fit; all None if it failed. Both libraries' predictions are scored by the same code."""
    if answer is None:
        return dict.fromkeys(SCORES)
    prediction = Gaussian(jnp.asarray(answer["mean"]), jnp.asarray(answer["variance"]))
    accuracy = {
        "rmse": float(dgpax.metrics.rmse(test.y, prediction)),
        "log_likelihood": -float(dgpax.metrics.nlpd(test.y, prediction)),
    }
    return accuracy | {name: answer[name] for name in SCORES if name not in accuracy}


def ratios(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Record:
    """Their time over ours, cold and warm; None if one of them failed."""

    def ratio(name: str) -> float | None:
        return None if theirs[name] is None or ours[name] is None else theirs[name] / ours[name]

    return {"ratio_cold": ratio("seconds_cold"), "ratio_warm": ratio("seconds_warm")}


def compare(task: Task, name: str, workers: Mapping[str, list[str]], versions: dict[str, Any]) -> list[Record]:
    """The fits of all workers, in their order, and the ratio of their times."""
    given = problem(task, name, task.start(name))
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
    D, variance = task.train.num_inputs, 1.3
    fixed = {
        "layers[0].kernel.lengthscale": np.sqrt(D) * np.linspace(0.5, 1.5, D),
        "layers[0].kernel.variance": variance,
        "likelihood.noise_variance": 0.05,
    }
    model = dgpax.parameters.set_values(task.start(name), fixed)
    jitter = variance * default_jitter(task.num_inducing, float)
    theirs = ask(peer, problem(task, name, model) | {"max_steps": 0, "jitter": jitter})
    ours = describe(fit(model, task.train, max_steps=0), task.train, task.test.x)
    differences: Record = dict.fromkeys(QUANTITIES)
    if theirs is not None:
        differences |= {q: float(np.max(np.abs(np.subtract(ours[q], theirs[q])))) for q in QUANTITIES}
    return {"kind": "agreement"} | task.name(name) | differences


def measure(tasks: Sequence[Task], models: Sequence[str], workers: Mapping[str, list[str]]):
    """All records, and the versions of the peers. Who goes first changes with every fit."""
    records: list[Record] = []
    versions: dict[str, Any] = {}
    for turn, (task, name) in enumerate((task, name) for task in tasks for name in models):
        rivals = {library: worker for library, worker in workers.items() if library == "dgpax" or name in PEER_MODELS}
        records += compare(task, name, dict(reversed(rivals.items())) if turn % 2 else rivals, versions)
    if "GPflow" in workers:
        first = {task.dataset: task for task in reversed(tasks)}
        records += [
            agreement(task, name, workers["GPflow"])
            for task in first.values()
            for name in FIXED_MODELS
            if name in models
        ]
    return records, versions


def main(arguments: Sequence[str]) -> Path | None:
    """Run, print, and record; the result file, if one was written."""
    chosen, started = _arguments(arguments), time.perf_counter()
    workers = {"dgpax": [sys.executable, "-m", "benchmarks._regression_dgpax"]}
    if chosen.peer_python:
        workers["GPflow"] = [chosen.peer_python, str(PEER)]
    else:
        print("GPflow is skipped: pass --peer-python, or set DGPAX_PEER_PYTHON, to a Python that has gpflow>=2.11.")
    tasks = [
        Task.load(dataset, split, chosen.num_inducing, chosen.seed, quick=chosen.quick)
        for dataset in chosen.dataset
        for split in chosen.splits
    ]
    records, versions = measure(tasks, chosen.models, workers)
    if chosen.quick and chosen.results is None:
        print("A quick run isn't recorded.")
        return None
    path = write(
        "regression",
        records,
        command=command_line("benchmarks.regression", arguments),
        precision=str(tasks[0].train.x.dtype),
        seeds=[chosen.seed],
        seconds=time.perf_counter() - started,
        peers=versions,
        folder=chosen.results or RESULTS,
    )
    print(f"Wrote {path.name}")
    return path


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regression", description=__doc__)
    parser.add_argument("--dataset", nargs="+", default=["energy"], help="names of the catalogue")
    parser.add_argument("--splits", nargs="+", type=int, default=[0], help="which standard splits")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--num-inducing", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0, help="of the choice of points")
    parser.add_argument("--peer-python", default=os.environ.get("DGPAX_PEER_PYTHON"), help="has gpflow >= 2.11")
    parser.add_argument("--quick", action="store_true", help="tiny, to try it out; recorded only with --results")
    parser.add_argument("--results", type=Path, help="folder for the result file")
    return parser.parse_args(arguments)


def _line(record: Record) -> str:
    numbers = ", ".join(f"{name} {record[name]:.4g}" for name in SCORES if isinstance(record[name], float))
    return f"{record['dataset']} {record['split']}, {record['model']}, {record['library']}: {numbers or 'failed'}"


if __name__ == "__main__":
    main(sys.argv[1:])
