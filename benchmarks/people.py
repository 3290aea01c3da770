"""What people get without turning a knob: `python -m benchmarks.people --part calibration`, on two quiet cores.

Parts: `calibration` of the estimator's defaults on standard splits; seconds to a `first` result, of `compare` on the
command line, and of the `check` of scikit-learn, each in fresh processes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import dgpax
from dgpax.distributions import AbstractDistribution

from . import _people_fresh as fresh
from ._record import RESULTS, Record, command_line, write
from ._tables import Column, Table

TITLE = "For people: defaults, first results, checks"
INTRODUCTION = """\
`DeepGPRegressor()` as it comes, beside exact GPR with an ARD RBF by L-BFGS where there are at most 2,000 training rows.
Log-likelihoods are means over test rows, in the units of y. Seconds of calibration are of fit and prediction, with the
compilation in the first split of a dataset; all others are of processes from their start to their end, with imports
and compilation. Wanted: 85 to 95% of the test rows in 90% intervals, a log-likelihood of at least exact GPR's − 0.1, a
first result within 60 s, `dgpax compare` within 300 s, the checks of both estimators together within 600 s."""
TABLES = (
    Table(
        title="Defaults on standard splits",
        kind="calibration",
        names=("dataset", "rows"),
        columns=(
            Column("coverage", "in 90% interval", ".3f"),
            Column("log_likelihood", "log-likelihood", ".3f"),
            Column("exact_log_likelihood", "exact GPR", ".3f"),
            Column("gain", "difference", ".3f"),
            Column("rmse", "RMSE", ".4f"),
            Column("exact_rmse", "exact GPR", ".4f"),
            Column("exact_coverage", "in its 90% interval", ".3f"),
            Column("steps", "steps", ".0f"),
            Column("seconds", "seconds", ".1f"),
        ),
    ),
    Table(
        title="From a table to predictions of 1,000 rows, in a fresh process",
        kind="first",
        names=("rows", "columns"),
        columns=(
            Column("seconds", "seconds", ".1f"),
            Column("import_seconds", "of which import", ".1f"),
            Column("fit_seconds", "fit", ".1f"),
            Column("predict_seconds", "prediction", ".1f"),
            Column("steps", "steps", ".0f"),
            Column("coverage", "in 90% interval", ".3f"),
            Column("rmse", "RMSE (noise 1)", ".3f"),
        ),
    ),
    Table(
        title="`dgpax compare`, in a fresh process",
        kind="compare",
        names=("dataset",),
        columns=(Column("seconds", "seconds", ".1f"),),
    ),
    Table(
        title="What `dgpax compare` says",
        kind="method",
        names=("dataset", "method"),
        columns=(
            Column("rmse", "RMSE", ".4f"),
            Column("nlpd", "NLPD", ".3f"),
            Column("crps", "CRPS", ".4f"),
            Column("coverage", "in 90% interval", ".3f"),
            Column("width", "width", ".3f"),
            Column("seconds", "seconds", ".1f"),
        ),
    ),
    Table(
        title="`check_estimator` of scikit-learn, in a fresh process",
        kind="check",
        names=("estimators", "scikit-learn"),
        columns=(
            Column("checks", "checks", ".0f"),
            Column("passed", "passed", ".0f"),
            Column("seconds", "seconds", ".1f"),
        ),
    ),
)
EXACT_UP_TO = 2000


def calibration(datasets: Sequence[str], splits: Sequence[int]) -> Iterator[list[Record]]:
    """A record per split."""
    for name in datasets:
        whole = dgpax.load(name)
        for split in splits:
            train, test = whole.split(split)
            record = {"kind": "calibration", "dataset": name, "rows": train.num_rows, "split": split}
            yield [record | judge_defaults(train, test)]


def judge_defaults(train: dgpax.Dataset, test: dgpax.Dataset) -> Record:
    """The estimator, and exact GPR where it is possible."""
    started = time.perf_counter()
    model = dgpax.DeepGPRegressor().fit(np.asarray(train.x), np.asarray(train.y))
    own = scores(model.predict_dist(np.asarray(test.x)), test)
    record: Record = {**own, "seconds": time.perf_counter() - started, "steps": model.fit_.report.steps}
    if train.num_rows > EXACT_UP_TO:
        return record | dict.fromkeys(("gain", "exact_log_likelihood", "exact_coverage", "exact_rmse", "exact_seconds"))
    started = time.perf_counter()
    fitted = dgpax.fit(dgpax.gp_regression(train), train, "exact", progress=False)
    exact = scores(dgpax.predict(fitted, test.x), test)
    record |= {f"exact_{key}": value for key, value in exact.items()}
    gain = own["log_likelihood"] - exact["log_likelihood"]
    return record | {"exact_seconds": time.perf_counter() - started, "gain": gain}


def scores(prediction: AbstractDistribution, test: dgpax.Dataset) -> dict[str, float]:
    """On test rows, in the units of y."""
    low, high = prediction.interval(0.9)
    return {
        "log_likelihood": float(jnp.mean(prediction.log_prob(test.y))),
        "rmse": float(jnp.sqrt(jnp.mean((prediction.mean - test.y) ** 2))),
        "coverage": float(jnp.mean((low <= test.y) & (test.y <= high))),
    }


def main(argv: Sequence[str] | None = None) -> Path:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.people", description=__doc__)
    parser.add_argument("--part", choices=("calibration", "first", "compare", "check"), default="calibration")
    parser.add_argument("--datasets", nargs="+", help="of calibration (concrete energy kin8nm) or compare")
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1, 2, 3, 4], help="of calibration")
    parser.add_argument("--rows", type=int, default=10_000, help="of first")
    parser.add_argument("--estimators", nargs="+", default=["DeepGPRegressor", "DeepGPClassifier"], help="of check")
    parser.add_argument("--name", help="of the result file, in place of the part's")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args(argv)
    words = sys.argv[1:] if argv is None else argv
    chosen.results.mkdir(parents=True, exist_ok=True)
    parts = {
        "calibration": lambda: calibration(chosen.datasets or ("concrete", "energy", "kin8nm"), chosen.splits),
        "first": lambda: fresh.first(chosen.rows, chosen.results),
        "compare": lambda: fresh.compare(chosen.datasets or ("energy", "kin8nm")),
        "check": lambda: fresh.check(chosen.estimators),
    }
    started, records, path = time.perf_counter(), [], None
    for found in parts[chosen.part]():
        print(*found, sep="\n", flush=True)
        records += found
        path = write(
            "people",
            records,
            part=chosen.name or chosen.part,
            command=command_line("benchmarks.people", words),
            precision="float64",
            seeds=[0],
            seconds=time.perf_counter() - started,
            peers={},
            folder=chosen.results,
        )
    assert path is not None
    return path


if __name__ == "__main__":
    main()
