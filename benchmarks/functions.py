"""Published test functions, few rows: `python -m benchmarks.functions --part functions --seeds 0 1 2`.

Parts: functions (log-likelihood and error of the default beside what it is made of), coverage (of 90% intervals, with
24 and 60 rows). A run writes its file after every fit, so that one that is stopped loses nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

import dgpax

from ._record import RESULTS, Record, command_line, write
from ._tables import Column, Table
from ._test_functions import FAMILIES, FUNCTIONS, TestFunction

TITLE = "Few rows: test functions"
INTRODUCTION = """\
Draws of published functions on the unit cube (`benchmarks/_test_functions.py`), scored on 2,000 other rows in units of
the function's standard deviation: mean log-likelihood of a row, RMSE, the share of rows in their 90% intervals. Seconds
are CPU time of fit and prediction, compiling included where a shape is new. "default" is `DeepGPRegressor()`, which
weighs exact layers, RBF and Matérn 5/2, and two layers; scikit-learn's GP has an ARD RBF and ten restarts."""
NAMES = ("function", "inputs", "rows", "noise", "method")
TABLES = (
    Table(
        "The default, and what it is made of",
        "functions",
        NAMES,
        (
            Column("log_likelihood", "log-likelihood", ".3f"),
            Column("rmse", "RMSE", ".4f"),
            Column("coverage", "90% intervals hold", ".3f"),
            Column("seconds", "CPU seconds", ".0f"),
        ),
    ),
    Table(
        "Coverage of 90% intervals",
        "coverage",
        NAMES,
        (Column("coverage", "mean", ".3f"), Column("log_likelihood", "log-likelihood", ".3f")),
    ),
)
LEVEL = 0.9
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _scikit_learn(x: np.ndarray, y: np.ndarray, new: np.ndarray, seed: int) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    lengthscales: Any = np.full(x.shape[1], 0.5)
    kernel = ConstantKernel(1.0, (1e-4, 1e5)) * RBF(lengthscales, (1e-3, 1e3)) + WhiteKernel(0.1, (1e-9, 10))
    fitted = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=10, random_state=seed).fit(x, y)
    mean, stddev = (jnp.asarray(values) for values in fitted.predict(new, return_std=True))
    return dgpax.distributions.Gaussian(mean[:, None], stddev[:, None] ** 2)


def _dgpax(**words: Any) -> Callable:
    return lambda x, y, new, seed: dgpax.DeepGPRegressor(**words).fit(x, y).predict_dist(new)


METHODS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray, int], Any]] = {
    "scikit-learn": _scikit_learn,
    "exact": _dgpax(inference="exact"),
    "two layers": _dgpax(num_layers=2),
    "default": _dgpax(),
}


def run(kind: str, functions: Sequence[TestFunction], methods: Sequence[str], seeds: Sequence[int]) -> Iterator[Record]:
    """A record for every draw of every function and every method."""
    for seed in seeds:
        for function in functions:
            drawn = function.draw(seed)
            names = {"kind": kind, "function": function.name, "inputs": function.num_inputs}
            names |= {"rows": function.num_rows, "noise": function.noise, "seed": seed}
            for method in methods:
                yield names | {"method": method} | _scores(METHODS[method], drawn, seed)


def _scores(method: Callable, drawn: Arrays, seed: int) -> Record:
    x, y, new, truth = drawn
    began = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore")
        prediction = method(x, y, new, seed)
        low, high = (np.asarray(edge)[:, 0] for edge in prediction.interval(LEVEL))
    seconds = time.process_time() - began
    return {
        "log_likelihood": float(np.mean(np.asarray(prediction.log_prob(truth[:, None])))),
        "rmse": float(np.sqrt(np.mean((np.asarray(prediction.mean)[:, 0] - truth) ** 2))),
        "coverage": float(np.mean((low <= truth) & (truth <= high))),
        "seconds": seconds,
    }


def main(argv: list[str] | None = None) -> Path:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("functions", "coverage"), default="functions")
    parser.add_argument("--functions", nargs="+", help="names; all unless given")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--rows", type=int, nargs="+", default=[24, 60], help="of the part coverage")
    parser.add_argument("--name", help="of the result file, in place of the part's")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    few = [family._replace(num_rows=rows) for rows in arguments.rows for family in FAMILIES]
    all_of_them = FUNCTIONS if arguments.part == "functions" else few
    functions = [f for f in all_of_them if not arguments.functions or f.name in arguments.functions]
    started, records, path = time.perf_counter(), [], arguments.results
    for record in run(arguments.part, functions, arguments.methods, arguments.seeds):
        print(
            {key: round(value, 4) if isinstance(value, float) else value for key, value in record.items()}, flush=True
        )
        records.append(record)
        path = write(
            "functions",
            records,
            part=arguments.name or arguments.part,
            command=command_line("benchmarks.functions", sys.argv[1:] if argv is None else argv),
            precision="float64",
            seeds=arguments.seeds,
            seconds=time.perf_counter() - started,
            peers={"scikit-learn": {"scikit-learn": version("scikit-learn")}},
            folder=arguments.results,
        )
    return path


if __name__ == "__main__":
    main()
