"""Sequential design: `python -m benchmarks.design --workers 16 --peer-python PATH`.

Parts: learn (RMSE of a function, against Latin hypercubes of the same size) and optimise (simple regret, against random
runs and BoTorch). Every function, method and seed is a process of its own that leaves a file in `--work`; the same
command goes on after it was stopped, and writes one result file at its end.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from ._record import RESULTS, ROOT, Record, command_line, write
from ._tables import Column, Table
from ._test_functions import FUNCTIONS

TITLE = "Sequential design"
INTRODUCTION = """\
Functions of `benchmarks/_test_functions.py`, free of noise, on the unit cube, in units of their standard deviation over
it. learn: RMSE at 2,000 points after all runs, which are a Latin hypercube ("hypercube") or chosen by "alc" and "vigf".
optimise: what the smallest value found is above the smallest of 100,000 points and of a descent from the best ten.
"deep" has two layers, "exact" one; BoTorch is its SingleTaskGP with LogEI. "first" runs are a Latin hypercube
everywhere. Branin, Franke and Hartmann are smooth; Higdon, corner and steps have cliffs or change their scale."""
TABLES = (
    Table("Learning a function", "learn", ("function", "runs", "method"), (Column("rmse", "RMSE", ".4f"),)),
    Table("Finding a minimum", "optimise", ("function", "runs", "method"), (Column("regret", "regret", ".4f"),)),
)
RUNS = {"branin": 40, "franke": 50, "hartmann": 60, "higdon": 40, "corner": 40, "steps": 60}
FIRST = 10
AT_ONCE = 2
"""Runs between two fits, of all methods."""
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
METHODS = {
    "learn": ("deep alc", "deep vigf", "deep hypercube", "exact alc", "exact hypercube"),
    "optimise": ("deep ei", "exact ei", "random", "BoTorch"),
}


class Job(NamedTuple):
    """One thing to be measured."""

    part: str
    function: str
    method: str
    seed: int
    runs: int

    @property
    def name(self) -> str:
        return f"{self.part}-{self.function}-{self.method.replace(' ', '-')}-{self.runs}-{self.seed}"

    def command(self, peer: str | None) -> list[str]:
        module = "benchmarks.peers.botorch_design" if self.method == "BoTorch" else "benchmarks._design_run"
        python = peer if self.method == "BoTorch" and peer else sys.executable
        return [python, "-m", module, *map(str, self)]


def done(job: Job, folder: Path, peer: str | None) -> Record | None:
    """The record of a job: that of an earlier run, or a new one; None where it failed, which is said."""
    path = folder / f"{job.name}.json"
    if path.exists():
        return json.loads(path.read_text())
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "XLA_FLAGS": ONE_THREAD}
    environment["DGPAX_CACHE"] = str(folder / "programs")
    ran = subprocess.run(job.command(peer), cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        print(f"{job.name} failed: {ran.stderr[-2000:]}", flush=True)
        return None
    record = job._asdict() | {"kind": job.part} | json.loads(ran.stdout.splitlines()[-1])
    path.with_suffix(".partial").write_text(json.dumps(record))
    path.with_suffix(".partial").replace(path)
    print(job.name, {key: round(value, 4) for key, value in record.items() if isinstance(value, float)}, flush=True)
    return record


def main(argv: list[str] | None = None) -> Path:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--functions", nargs="+", choices=RUNS, default=list(RUNS))
    parser.add_argument("--methods", nargs="+", default=sum(METHODS.values(), ()))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--runs", type=int, help="of every function, in place of its own number")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--peer-python", default=os.environ.get("DGPAX_BOTORCH_PYTHON"))
    parser.add_argument("--work", type=Path, default=ROOT / "design-runs")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    jobs = [
        Job(part, function, method, seed, arguments.runs or RUNS[function])
        for seed, part, function in itertools.product(arguments.seeds, arguments.part, arguments.functions)
        for method in METHODS[part]
        if method in arguments.methods and (method != "BoTorch" or arguments.peer_python)
    ]
    arguments.work.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    with ThreadPoolExecutor(arguments.workers) as pool:
        found = pool.map(lambda job: done(job, arguments.work, arguments.peer_python), jobs)
        records: list[Record] = [record for record in found if record is not None]
    return write(
        "design", records, command=command_line("benchmarks.design", sys.argv[1:] if argv is None else argv),
        precision="float64", seeds=arguments.seeds, seconds=time.perf_counter() - began,
        peers={"BoTorch": _versions(records)}, folder=arguments.results,
    )  # fmt: skip


def _versions(records: list[Record]) -> dict[str, str]:
    return dict.fromkeys(["botorch"], ", ".join({str(record["botorch"]) for record in records if "botorch" in record}))


assert set(RUNS) <= {function.name for function in FUNCTIONS}

if __name__ == "__main__":
    main()
