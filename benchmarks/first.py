"""What the first thing that somebody runs costs, and the second: `python -m benchmarks.first`, with Linux or macOS.

Everything has a process of its own, and seconds are its CPU time, which a busy machine stretches less than the clock.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from ._record import RESULTS, ROOT, Record, command_line, write
from ._tables import Column, Table

TITLE = "The first result, and the second"
INTRODUCTION = """\
CPU seconds, user and system, of fresh processes from their start to their end; medians of rounds, in each of which
everything ran in turn. A first run has an empty cache of compiled programs, the second what the first has left in it.
Wanted: importing dgpax at most 1.4 times its engines; help, version and usage errors at most 0.5 s; the second
`dgpax fit` at most 0.4 of the first; 80 rows to predictions with intervals at most 5 s with an exact GP and 15 s with
two layers, 3 and 6 s with what was compiled before."""
RATIOS = (
    Column("seconds", "CPU seconds", ".2f"),
    Column("ratio", "of the import of JAX, Equinox and Optax", ".2f"),
)
RUNS = (
    Column("first_seconds", "first run, CPU seconds", ".1f"),
    Column("second_seconds", "second run", ".1f"),
    Column("second_of_first", "second of first", ".2f"),
    Column("uncached_seconds", "without a cache", ".1f"),
)
TABLES = (
    Table("Before anything is computed", "start", ("what",), RATIOS),
    Table("From a table to a model, a plot and a report", "command", ("command",), RUNS),
    Table(
        "From 80 rows to predictions with intervals, import included",
        "rows",
        ("model",),
        (*RUNS, Column("second_of_peer", "second of scikit-learn's exact GP", ".1f")),
    ),
)
ENGINES = "import jax, equinox, optax"
TEN_LINES = "from dgpax import dataset, fit, gp_regression, load, metrics, predict"
STARTS = {ENGINES: ENGINES, "import dgpax": "import dgpax", TEN_LINES: TEN_LINES}
COMMAND = "import sys; from dgpax.cli import main; sys.argv[0] = 'dgpax'; main()"
WORDS = ("version", "--help", "fit --help", "fit --layers zero")
ROWS = """
import numpy as np
rng = np.random.default_rng(0)
x = rng.uniform(size=(80, 3))
y = np.sin(6.0 * x[:, 0]) + x[:, 1] ** 2 + 0.1 * rng.normal(size=80)
"""
ESTIMATOR = """
import dgpax
model = dgpax.DeepGPRegressor({settings}).fit(x, y)
assert np.mean((model.predict(x) - y) ** 2) < 0.1
low, high = model.predict_interval(x, 0.9).T
"""
PEER = """
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
kernel = ConstantKernel() * RBF(np.ones(3)) + WhiteKernel()
mean, stddev = GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=0).fit(x, y).predict(x, True)
"""
ESTIMATORS = {"exact": "inference='exact'", "two layers": "num_layers=2", "the default, which weighs both": ""}
PEER_NAME = "scikit-learn's exact GP, two restarts"


class Processes:
    """The environment variables that they run with."""

    def __init__(self) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("DGPAX_CACHE", "JAX_"))}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed has its bytecode
        paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        self.environment = kept | {"PYTHONPATH": paths}

    def seconds(self, script: str, *words: str, cache: Path | None = None, code: int = 0) -> float:
        """CPU time of a Python process that ends with this exit code."""
        environment = self.environment | {"DGPAX_CACHE": "off" if cache is None else str(cache)}
        command = [sys.executable, "-c", script, *words]
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=said, stderr=said)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != code:
                said.seek(0)
                raise RuntimeError(f"{script} {words} ended with {process.returncode}: {said.read()}")
        return used.ru_utime + used.ru_stime


def measure(num_rounds: int, quick: bool) -> list[Record]:
    """All of it in turn, in every round."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        processes = Processes()
        jobs = _jobs(processes, folder, quick)
        for script in ("from dgpax import *; import dgpax.cli", ROWS + PEER):  # leaves the bytecode
            processes.seconds(script)
        found: dict[str, list[tuple[float, ...]]] = {name: [] for name in jobs}
        for number in range(num_rounds):
            for name, job in jobs.items():
                found[name].append(job(number))
                print(name, *(f"{seconds:.2f}" for seconds in found[name][-1]), flush=True)
    middle = {name: [median(values) for values in zip(*rounds, strict=True)] for name, rounds in found.items()}
    engines, peer = middle[ENGINES][0], middle[PEER_NAME][0]
    records: list[Record] = []
    for name, values in middle.items():
        rounds: Record = {"rounds": num_rounds}
        if name in (*STARTS, *map(_typed, WORDS)):
            records.append({"kind": "start", "what": name, "seconds": values[0], "ratio": values[0] / engines} | rounds)
        elif name == PEER_NAME:
            records.append({"kind": "rows", "model": name, "uncached_seconds": peer} | rounds)
        else:
            first, second, *without = values
            runs = {"first_seconds": first, "second_seconds": second, "second_of_first": second / first}
            runs |= {"uncached_seconds": without[0] if without else None}
            what = {"kind": "rows", "model": name, "second_of_peer": second / peer}
            records.append((what if name in ESTIMATORS else {"kind": "command", "command": name}) | runs | rounds)
    return records


def _jobs(processes: Processes, folder: Path, quick: bool) -> dict[str, Callable[[int], tuple[float, ...]]]:
    """What a round consists of, each a function of its number; those that compile run twice with a cache."""
    jobs: dict[str, Callable[[int], tuple[float, ...]]] = {}
    for name, script in STARTS.items():
        jobs[name] = lambda number, script=script: (processes.seconds(script),)
    for words in WORDS:
        code = 2 if "zero" in words else 0
        jobs[_typed(words)] = lambda number, words=words, code=code: (
            processes.seconds(COMMAND, *words.split(), code=code),
        )

    def thrice(number: int, name: str, script: str, *words: str) -> tuple[float, ...]:
        cache = folder / f"{name}-{number}"
        return tuple(processes.seconds(script, *words, cache=place) for place in (cache, cache, None))

    small = ("energy", "--inference", "sparse", "--num-inducing", "10", "--max-seconds", "1", "--no-report")
    words = ("fit", *(small if quick else ()))
    output = ("--output", str(folder / "output"))
    jobs[_typed(" ".join(words))] = lambda number: thrice(number, "fit", COMMAND, *words, *output)
    for name, settings in ESTIMATORS.items():
        if quick and name != "exact":
            continue
        script = ROWS + ESTIMATOR.format(settings=settings)
        jobs[name] = lambda number, name=name, script=script: thrice(number, name, script)
    jobs[PEER_NAME] = lambda number: (processes.seconds(ROWS + PEER),)
    return jobs


def _typed(words: str) -> str:
    return f"dgpax {words}"


def main(arguments: Sequence[str]) -> Path | None:
    """Run, print, and record; the result file, if one was written."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="tiny, to try it out; recorded only with --results")
    parser.add_argument("--results", type=Path)
    chosen, started = parser.parse_args(arguments), time.perf_counter()
    records = measure(1 if chosen.quick else chosen.rounds, chosen.quick)
    print(*records, sep="\n")
    if chosen.quick and chosen.results is None:
        print("A quick run isn't recorded.")
        return None
    return write(
        "first",
        records,
        command=command_line("benchmarks.first", arguments),
        precision="float64",
        seeds=[0],
        seconds=time.perf_counter() - started,
        peers={},
        folder=chosen.results or RESULTS,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
