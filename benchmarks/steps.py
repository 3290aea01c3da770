"""The time of a gradient step of a deep GP against GPflux and GPyTorch: `python -m benchmarks.steps`.

The peers' interpreters are named by DGPAX_GPFLUX_PYTHON and DGPAX_GPYTORCH_PYTHON.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ._record import RESULTS, ROOT, Record, command_line, write
from ._regression_task import ask
from ._tables import Column, Table

PEERS = {
    "GPflux": ("DGPAX_GPFLUX_PYTHON", ROOT / "benchmarks" / "peers" / "gpflux_steps.py"),
    "GPyTorch": ("DGPAX_GPYTORCH_PYTHON", ROOT / "benchmarks" / "peers" / "gpytorch_steps.py"),
}
WIDTH = 8
START = {"lengthscale": 2.0, "variance": 2.0, "noise_variance": 0.01, "inner_scale": 1e-5, "rate": 0.01}
NUMBERS = ("milliseconds", "fastest", "elbo_start", "elbo_end")
DATA = "8 random columns"
_PAPER = "Salimbeni & Deisenroth 2017, Table 3"


@dataclass(frozen=True)
class Case:
    """What one step works on; `versus` names the case whose times of the peers it is compared with."""

    name: str
    num_rows: int
    num_layers: int
    num_models: int = 1
    num_outputs: int = 1
    dtype: str = "float64"
    versus: str | None = None
    kind: str = "step"

    def __str__(self) -> str:
        return f"{self.name}, {self.num_rows} rows, {self.num_layers} layers"

    def labels(self) -> Record:
        """How records of this case are found again."""
        return {"case": self.name, "rows": self.num_rows, "layers": self.num_layers, "dtype": self.dtype}

    def quick(self) -> Case:
        return replace(self, num_rows=self.num_rows // 20, num_models=min(self.num_models, 2))


CASES = {
    "large": (Case("large", 10_000, 3, versus="large"),),
    "small": (Case("small", 1_000, 2, versus="small"),),
    "mixed": (Case("large, mixed", 10_000, 3, dtype="float32", versus="large"),),
    "many": (Case("many: 20 models at once", 900, 3, num_models=20),),
    "growth": (
        *(Case("layers", 1_000, num_layers, num_outputs=WIDTH, kind="growth") for num_layers in (2, 4, 6, 8, 10)),
        *(Case("rows", 1_000 * 2**power, 2, kind="growth") for power in range(6)),
    ),
}
TITLE = "Time of a gradient step"
INTRODUCTION = """\
One step of Adam on the ELBO of a deep GP: loss, gradient and update, all rows at once, one sample. 8 columns, inner
layers of width 8 with identity means, 100 inducing points per layer whose locations are trained, an ARD RBF kernel
shared by the outputs of a layer, whitened q(u) with a full Cholesky factor per output, Gaussian noise. All libraries
start from the same values. Milliseconds per step are the median and the least over runs of 25 steps (on GPUs dgpax
takes 100, as `fit` does there), the first two runs of every process (compilation) left out;
the libraries take turns, each in a fresh process. The ELBO per row, in the first and in the 125th step of a process,
shows that they do the same. dgpax's time is that of the loop of `fit`; GPflux
steps in a `tf.function`, GPyTorch as in its tutorial. Mixed is dgpax on float32 data, with Kuu and its factor in
float64, against the peers in float64. In the files after b646a7a the models whose layers grow in number have 8 outputs,
so that the last layer costs as much as the others. The paper's own times are of inner layers of width 1."""
TABLES = (
    Table(
        title="Steps",
        kind="step",
        names=("case", "rows", "layers", "library", "device", "dtype"),
        columns=(
            Column("milliseconds", "median, ms", ".2f"),
            Column("fastest", "least, ms", ".2f"),
            Column("elbo_start", "ELBO per row, first", ".3f"),
            Column("elbo_end", "last", ".3f"),
        ),
        published=tuple(
            {
                "dataset": DATA, "case": f"DGP {layers}", "rows": "10000", "layers": layers, "library": _PAPER,
                "device": device, "milliseconds": milliseconds,
            }
            for layers, device, milliseconds in (
                ("2", "CPU, 8 cores", "360"), ("3", "CPU, 8 cores", "490"),
                ("2", "Tesla K80", "30"), ("3", "Tesla K80", "45"),
            )
        ),
    ),
    Table(
        title="Time of the peer over time of dgpax",
        kind="speed",
        names=("case", "library"),
        columns=(Column("ratio", "ratio of medians", ".2f"),),
    ),
    Table(
        title="Growth of dgpax's step",
        kind="growth",
        names=("case", "rows", "layers"),
        columns=(Column("milliseconds", "median, ms", ".2f"), Column("fastest", "least, ms", ".2f")),
    ),
    Table(
        title="Exponents of growth: the slope of log time",
        kind="exponent",
        names=("case",),
        columns=(Column("exponent", "exponent", ".2f"),),
    ),
)  # fmt: skip


def problem(case: Case, *, quick: bool) -> dict[str, Any]:
    """What a worker is given. The data is random but the same for all libraries; only its size matters.

    A worker makes `num_runs` runs of `steps` steps, and tells the milliseconds per step of all but the first two.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(case.num_models * case.num_rows, WIDTH))
    y = np.sin(x.sum(axis=1, keepdims=True)) + 0.1 * rng.normal(size=(len(x), case.num_outputs))
    counts = {"num_runs": 4, "steps": 3} if quick else {"num_runs": 5, "steps": 25}
    given = {
        "x": x.astype(case.dtype),
        "y": y.astype(case.dtype),
        "locations": x[: 10 if quick else 100],
        "num_layers": case.num_layers,
        "num_models": case.num_models,
    }
    return given | counts | START


def pooled(answers: Sequence[Mapping[str, Any] | None]) -> Record:
    """The numbers of all rounds together; all None if every one failed."""
    present = [answer for answer in answers if answer is not None]
    if not present:
        return {"device": None} | dict.fromkeys(NUMBERS)
    times = [number for answer in present for number in answer["milliseconds"]]
    first = {name: present[0][name] for name in ("device", "elbo_start", "elbo_end")}
    return first | {"milliseconds": float(np.median(times)), "fastest": min(times)}


def measure(cases: Sequence[Case], workers: Mapping[str, list[str]], num_rounds: int, *, quick: bool):
    """The records of the steps, and the versions of the peers. Every other round goes backwards; growth takes one."""
    turns = [(case, library) for case in cases for library in workers if library == "dgpax" or case.versus == case.name]
    answers: dict[tuple[Case, str], list[dict[str, Any] | None]] = {turn: [] for turn in turns}
    versions: dict[str, Any] = {}
    for number in range(num_rounds):
        for case, library in reversed(turns) if number % 2 else turns:
            if number > 0 and case.kind == "growth":
                continue
            answer = ask(workers[library], problem(case, quick=quick))
            answers[case, library].append(answer)
            if answer is not None and "versions" in answer:
                versions[library] = answer["versions"]
            print(f"{case}, {library}: {_numbers(answer)}", flush=True)
    records: list[Record] = [
        {"kind": case.kind, "dataset": DATA, "library": library} | case.labels() | pooled(found)
        for (case, library), found in answers.items()
    ]
    return records, versions


def ratios(cases: Sequence[Case], records: Sequence[Record]) -> list[Record]:
    """The peers' times over dgpax's, where both ran on the same kind of device."""
    steps = {(record["case"], record["library"]): record for record in records if record["kind"] == "step"}
    rows: list[Record] = []
    for case in cases:
        for peer in PEERS:
            ours, theirs = steps.get((case.name, "dgpax")), steps.get((case.versus, peer))
            if ours is None or theirs is None or ours["device"] != theirs["device"]:
                continue
            ratio = _ratio(theirs["milliseconds"], ours["milliseconds"])
            rows.append({"kind": "speed", "case": case.name, "library": peer, "ratio": ratio})
    return rows


def exponents(records: Sequence[Record]) -> list[Record]:
    """The slope of log milliseconds in log rows, and in log layers, by least squares."""
    rows: list[Record] = []
    for name in ("layers", "rows"):
        points = [
            (record[name], record["milliseconds"])
            for record in records
            if record["kind"] == "growth" and record["case"] == name and record["milliseconds"] is not None
        ]
        if len(points) > 1:
            sizes, times = np.log(np.asarray(points, float)).T
            rows.append({"kind": "exponent", "case": name, "exponent": float(np.polyfit(sizes, times, 1)[0])})
    return rows


def find_workers(peers: Sequence[str]) -> dict[str, list[str]]:
    """The command of every library that can be run; peers without an interpreter are left out, with a note."""
    workers = {"dgpax": [sys.executable, "-m", "benchmarks._steps_dgpax"]}
    for peer in peers:
        variable, script = PEERS[peer]
        if variable in os.environ:
            workers[peer] = [os.environ[variable], str(script)]
        else:
            print(f"{peer} is left out: set {variable} to a Python that has it.")
    return workers


def main(arguments: Sequence[str]) -> Path | None:
    """Run, print, and record; the result file, if one was written."""
    chosen, started = _arguments(arguments), time.perf_counter()
    cases = [case for name in chosen.cases for case in CASES[name]]
    cases = [case.quick() for case in cases] if chosen.quick else cases
    records, versions = measure(cases, find_workers(chosen.peers), chosen.rounds, quick=chosen.quick)
    records += ratios(cases, records) + exponents(records)
    if chosen.quick and chosen.results is None:
        print("A quick run isn't recorded.")
        return None
    # The backend is asked for only now: asking takes most of a GPU's memory from the workers.
    path = write(
        "steps",
        records,
        command=command_line("benchmarks.steps", arguments),
        precision=" and ".join(sorted({case.dtype for case in cases}, reverse=True)),
        seeds=[0],
        seconds=time.perf_counter() - started,
        peers=versions,
        folder=chosen.results or RESULTS,
        part="-".join([jax.default_backend(), *([] if chosen.cases == list(CASES) else chosen.cases)]),
    )
    print(f"Wrote {path.name}")
    return path


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steps", description=__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=2, help="processes per case and library; growth takes one")
    parser.add_argument("--quick", action="store_true", help="tiny, to try it out; recorded only with --results")
    parser.add_argument("--results", type=Path, help="folder for the result file")
    return parser.parse_args(arguments)


def _ratio(theirs: Any, ours: Any) -> float | None:
    return None if theirs is None or ours is None else theirs / ours


def _numbers(answer: Mapping[str, Any] | None) -> str:
    if answer is None:
        return "failed"
    times = ", ".join(f"{number:.4g}" for number in answer["milliseconds"])
    return f"{times} ms, ELBO per row {answer['elbo_start']:.4f} to {answer['elbo_end']:.4f}"


if __name__ == "__main__":
    main(sys.argv[1:])
