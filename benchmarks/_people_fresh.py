"""Measurements of `people` that have processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ._record import ROOT, Record

FIRST = """
import sys, time
started = time.perf_counter()
import json, numpy as np, dgpax
imported = time.perf_counter()
x, y, x_test = (np.load(sys.argv[1])[name] for name in ("x", "y", "x_test"))
model = dgpax.DeepGPRegressor()
model.fit(x, y)
fitted = time.perf_counter()
mean, (low, high) = model.predict(x_test), model.predict_interval(x_test).T
predicted = time.perf_counter()
np.savez(sys.argv[1], mean=mean, low=low, high=high)
print(json.dumps({"import_seconds": imported - started, "fit_seconds": fitted - imported,
                  "predict_seconds": predicted - fitted, "steps": model.fit_report_.steps,
                  "stopped_because": model.fit_report_.stopped_because}))
"""
COMMAND = "import sys; from dgpax.cli import main; sys.argv[0] = 'dgpax'; main()"
CHECK = """
import json, sys, warnings
import dgpax, sklearn
from sklearn.utils.estimator_checks import check_estimator
warnings.simplefilter("ignore")
results = [result for name in sys.argv[1:]
           for result in check_estimator(getattr(dgpax, name)(), on_fail=None, on_skip=None)]
others = [result["check_name"] for result in results if result["status"] != "passed"]
print(json.dumps({"checks": len(results), "passed": len(results) - len(others), "others": ", ".join(others) or None,
                  "scikit-learn": sklearn.__version__}))
"""


def first(num_rows: int, folder: Path) -> Iterator[list[Record]]:
    """Friedman's first function [Friedman 1991] of 5 of 8 columns, with noise of standard deviation 1."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(num_rows + 1000, 8))
    y = 10.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20.0 * (x[:, 2] - 0.5) ** 2 + 10.0 * x[:, 3] + 5.0 * x[:, 4]
    y += rng.normal(size=len(x))
    path = folder / "table.npz"
    np.savez(path, x=x[:num_rows], y=y[:num_rows], x_test=x[num_rows:])
    seconds, answer = run(FIRST, str(path))
    told, observed = np.load(path), y[num_rows:]
    path.unlink()
    record: Record = {"kind": "first", "rows": num_rows, "columns": 8, "seconds": seconds} | json.loads(answer)
    record["rmse"] = float(np.sqrt(np.mean((told["mean"] - observed) ** 2)))
    record["coverage"] = float(np.mean((told["low"] <= observed) & (observed <= told["high"])))
    yield [record]


def compare(datasets: Sequence[str]) -> Iterator[list[Record]]:
    """The command, and what it says about every method."""
    for name in datasets:
        seconds, answer = run(COMMAND, "compare", name, "--json")
        said = json.loads(answer)
        labels: Record = {"kind": "method", "dataset": name}
        methods: list[Record] = [labels | {"method": method} | own for method, own in said["methods"].items()]
        yield [{"kind": "compare", "dataset": name, "seconds": seconds, "verdict": said["verdict"]}, *methods]


def check(estimators: Sequence[str]) -> Iterator[list[Record]]:
    """All checks, one estimator after the other in one process; SCIPY_ARRAY_API, as one of them asks for it."""
    seconds, answer = run(CHECK, *estimators)
    yield [{"kind": "check", "estimators": ", ".join(estimators), "seconds": seconds} | json.loads(answer)]


def run(script: str, *words: str) -> tuple[float, str]:
    """Wall seconds of a Python process with these arguments, and what it printed; warnings are shown."""
    environment = os.environ | {"SCIPY_ARRAY_API": "1", "DGPAX_CACHE": "off"}
    started = time.perf_counter()
    command = [sys.executable, "-c", script, *words]
    answer = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return time.perf_counter() - started, answer.stdout
