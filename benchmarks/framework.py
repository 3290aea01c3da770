"""What inducing variables cost: `python -m benchmarks.framework [--quick] [--results FOLDER]`.

The orders of Table 1 of van der Wilk et al. (2020), and Fourier features [Hensman, Durrande & Solin 2018].
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ._framework_steps import (
    Size,
    collapsed_step,
    coregionalisation_step,
    exponent,
    fastest,
    variational_step,
)
from ._record import RESULTS, Record, command_line, write
from ._tables import Column, Table

TITLE = "What inducing variables cost"
INTRODUCTION = """\
Seconds of one step: an objective with the gradient by all parameters, compiled before; the fastest of several, taken in
turns. LMC is the linear model of coregionalisation with N rows, P outputs, L latent processes and one input. Its
inducing variables are all outputs at M locations ("vector"), M pairs of a location and an output ("pairs"), or M points
in every latent process ("latent"). An exponent is the slope of log seconds on the three largest sizes; beside it stands
that of the leading terms in Table 1 of van der Wilk et al. (2020) for large sizes (vector: P³M³ + NP³M²; latent:
LM³ + NLM² + NPL; pairs are not in the table: M³ + NPM²)."""
SECONDS = Column("seconds", "seconds", ".2g")
TABLES = (
    Table(
        title="What was asked for",
        kind="target",
        names=("claim", "wanted"),
        columns=(Column("measured", "measured", ".2f"),),
    ),
    Table(
        title="Exponents of the time of a step, LMC",
        kind="exponent",
        names=("inducing", "grows", "paper"),
        columns=(Column("measured", "measured", ".2f"),),
    ),
    Table(
        title="A step of the ELBO, LMC",
        kind="lmc",
        names=("inducing", "N", "P", "L", "M"),
        columns=(SECONDS,),
    ),
    Table(
        title="A step with Fourier features or inducing points, one input",
        kind="line",
        names=("objective", "inducing", "N", "M"),
        columns=(SECONDS,),
    ),
)  # fmt: skip
ORDERS = {
    ("vector", "P"): "3", ("vector", "M"): "2 to 3",
    ("pairs", "P"): "1", ("pairs", "M"): "2 to 3",
    ("latent", "P"): "0 to 1", ("latent", "M"): "2 to 3",
}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """How large everything is. `grow` has the size a series starts from, and what P and M become."""

    seconds: float
    grow: dict[str, tuple[Size, tuple[int, ...], tuple[int, ...]]]
    compared: Size
    vector_points: tuple[int, ...]
    limit_seconds: float
    num_features: int
    few_rows: int
    many_rows: int
    point_rows: int
    batch_rows: tuple[int, ...]


FULL = Plan(
    seconds=2.0,
    grow={
        "vector": (Size(N=200, P=8, L=8, M=10), (8, 16, 32, 64), (25, 50, 100, 200)),
        "pairs": (Size(N=1000, P=8, L=5, M=200), (8, 16, 32, 64), (100, 200, 400, 800)),
        "latent": (Size(N=1000, P=50, L=5, M=100), (100, 400, 1600, 6400), (100, 200, 400, 800)),
    },
    compared=Size(N=1000, P=50, L=5, M=100),
    vector_points=(5, 10, 20, 30, 40),
    limit_seconds=30.0,
    num_features=500,
    few_rows=1_000,
    many_rows=1_000_000,
    point_rows=100_000,
    batch_rows=(1_000, 5_000),
)
QUICK = Plan(
    seconds=0.0,
    grow={"pairs": (Size(N=20, P=2, L=2, M=4), (2, 4), (4, 8))},
    compared=Size(N=30, P=4, L=2, M=8),
    vector_points=(2, 4),
    limit_seconds=30.0,
    num_features=20,
    few_rows=100,
    many_rows=1_000,
    point_rows=1_000,
    batch_rows=(100,),
)


def series(plan: Plan) -> list[Record]:
    """Steps of the LMC while one size grows, and the exponents."""
    records: list[Record] = []
    for inducing, (start, outputs, locations) in plan.grow.items():
        for letter, values in (("P", outputs), ("M", locations)):
            times = [_lmc(records, inducing, replace(start, **{letter: value}), plan.seconds) for value in values]
            paper = ORDERS[inducing, letter]
            measured = exponent(values, times)
            names: Record = {"kind": "exponent", "inducing": inducing, "grows": letter, "paper": paper}
            records.append(_shown(names | {"measured": measured}))
    return records


def latent_against_vector(plan: Plan) -> list[Record]:
    """The same LMC at the largest M at which a step with vector-valued points stays under the limit."""
    records: list[Record] = []
    vector, used = float("nan"), plan.vector_points[0]
    for M in plan.vector_points:
        vector, used = _lmc(records, "vector", replace(plan.compared, M=M), plan.seconds), M
        if 4.0 * vector > plan.limit_seconds:
            break
    latent = _lmc(records, "latent", replace(plan.compared, M=used), plan.seconds)
    _lmc(records, "latent", plan.compared, plan.seconds)
    size = plan.compared
    claim = f"vector over latent, P = {size.P}, L = {size.L}, N = {size.N:,}, M = {used}"
    return [*records, _target(claim, "at least 20", vector / latent)]


def features_against_points(plan: Plan) -> list[Record]:
    """Hyperparameter steps by the collapsed bound, and steps of the ELBO."""
    M = plan.num_features
    few, many = fastest([collapsed_step("features", N, M) for N in (plan.few_rows, plan.many_rows)], plan.seconds)
    (points,) = fastest([collapsed_step("points", plan.point_rows, M)], plan.seconds)
    records = [
        _line("collapsed bound", "features", plan.few_rows, M, few),
        _line("collapsed bound", "features", plan.many_rows, M, many),
        _line("collapsed bound", "points", plan.point_rows, M, points),
        _target(f"features, N = {plan.many_rows:,} over N = {plan.few_rows:,}, M = {M}", "0.8 to 1.2", many / few),
        _target(f"points at N = {plan.point_rows:,} over features, M = {M}", "at least 50", points / many),
    ]
    for N in plan.batch_rows:
        kinds = ("features", "points")
        times = dict(zip(kinds, fastest([variational_step(kind, N, M) for kind in kinds], plan.seconds), strict=True))
        records += [_line("ELBO", kind, N, M, seconds) for kind, seconds in times.items()]
        claim = f"points over features, ELBO, batch of {N:,}, M = {M}"
        records.append(_target(claim, "at least 1.5", times["points"] / times["features"]))
    return records


def main(arguments: Sequence[str]) -> Path | None:
    """Run, print, and record; the result file, if one was written."""
    chosen, started = _arguments(arguments), time.perf_counter()
    plan = QUICK if chosen.quick else FULL
    records = [*features_against_points(plan), *latent_against_vector(plan), *series(plan)]
    if chosen.quick and chosen.results is None:
        print("A quick run isn't recorded.")
        return None
    path = write(
        "framework",
        records,
        command=command_line("benchmarks.framework", arguments),
        precision="float64",
        seeds=[0],
        seconds=time.perf_counter() - started,
        peers={},
        folder=chosen.results or RESULTS,
    )
    print(f"Wrote {path.name}")
    return path


def _lmc(records: list[Record], inducing: str, size: Size, seconds: float) -> float:
    """Time a step and add its record."""
    (fast,) = fastest([coregionalisation_step(inducing, size)], seconds)
    records.append(_shown({"kind": "lmc", "inducing": inducing} | asdict(size) | {"seconds": fast}))
    return fast


def _line(objective: str, inducing: str, num_rows: int, num_inducing: int, seconds: float) -> Record:
    names = {"kind": "line", "objective": objective, "inducing": inducing, "N": num_rows, "M": num_inducing}
    return _shown(names | {"seconds": seconds})


def _target(claim: str, wanted: str, measured: float) -> Record:
    return _shown({"kind": "target", "claim": claim, "wanted": wanted, "measured": measured})


def _shown(record: Record) -> Record:
    values = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in record.values())
    print(", ".join(values), flush=True)
    return record


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.framework", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny, to try it out; recorded only with --results")
    parser.add_argument("--results", type=Path, help="folder for the result file")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
