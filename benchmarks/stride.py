"""STRIDE: `python -m benchmarks.stride --part jumps`.

Parts: gains, jumps, inducing, layers, time, uci, fashion, growth. `--quick` tries gains, jumps, uci or growth out in a
small size and records nothing.
Data that isn't shipped must be in the data folder. `uci` and `fashion` are for a GPU, a process per dataset or per
number of inducing points, each with a `--name`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from dgpax.stride import Schedule

from ._record import RESULTS, Record, command_line, write
from ._stride_gains import run_gains, with_exponents
from ._stride_large import FASHION_MODELS, PUBLISHED_ROWS, run_fashion, run_growth
from ._stride_scores import say
from ._stride_small import PUBLISHED_TIMES, UCI_MODELS, run_jumps, run_uci
from ._tables import Column, Table

TITLE = "STRIDE"
INTRODUCTION = """\
Sampled hidden layers and greedily chosen inducing points. Kernels are isotropic as in the paper, except for
Fashion-MNIST, where sparse GP and STRIDE have a length scale per feature; the noise of the 1-D example is known, that
of the others is the sparse GP's. The sparse GP has as many inducing points, chosen greedily from the rows too. SMSE is
on held-out rows (for the 1-D example on the true function), NLPD is the predictive density of the mixture, MNLL the
paper's equation (6). Seconds to train include compilation; those of STRIDE leave out the sparse GP it starts from.
R-hat is the largest over predictions at twenty rows, after the warm-up. The result files of 2026-11-15 and 2026-11-16
have another one, which compares the particles' log-likelihoods in the last expectation step, of chains that all started
from the same values: only figures of the same kind can be compared. On Fashion-MNIST two or three processes had
the GPU at the same time, so that seconds are upper limits there; the paper shows its times in figures only."""
SCORES = (
    Column("smse", "SMSE", ".5f"),
    Column("nlpd", "NLPD", ".3f"),
    Column("mnll", "MNLL", ".3f"),
    Column("seconds", "seconds to train", ".1f"),
    Column("seconds_predict", "to predict", ".3f"),
    Column("r_hat", "R-hat", ".2f"),
)
TABLES = (
    Table("Regression with jumps (Figures 1 and 3)", "jumps", ("model", "inducing", "hidden"), SCORES),
    Table("UCI, folds of ten (Figures 4 and 5)", "uci", ("dataset", "model"), SCORES, PUBLISHED_TIMES),
    Table("Fashion-MNIST features (Table 1, Figures 6-8)", "fashion", ("model", "inducing"), SCORES, PUBLISHED_ROWS),
    Table(
        title="One iteration as the rows grow",
        kind="growth",
        names=("rows", "inducing", "particles"),
        columns=(
            Column("seconds", "seconds", ".2f"),
            Column("exponent", "exponent", ".2f"),
            Column("peak_mib", "peak MiB", ".0f"),
        ),
    ),
    Table(
        title="One exchange of an inducing point: closed forms and direct evaluation",
        kind="gains",
        names=("rows", "inducing", "candidates"),
        columns=(
            Column("seconds", "seconds, closed form", ".3f"),
            Column("seconds_direct", "direct", ".3f"),
            Column("speedup", "ratio", ".1f"),
            Column("exponent", "exponent of the inducing points", ".2f"),
            Column("exponent_direct", "direct", ".2f"),
        ),
    ),
)
PAPER, JUMPS = Schedule(), Schedule(num_steps=1000, num_candidates=200)
LARGE = Schedule(num_exchanges=3, num_candidates=1000)
ONE = Schedule(num_iterations=1, num_steps=20, num_exchanges=1, num_candidates=100)
SHORT = Schedule(num_iterations=2, num_steps=20, num_exchanges=2, num_candidates=50)
PARTS: dict[str, Callable[[argparse.Namespace], Iterable[Record]]] = {
    "gains": lambda a: (
        run_gains([(5000, 50, 500)]) + with_exponents(run_gains([(2000, m, m) for m in (100, 200, 400)]))
    ),
    "jumps": lambda a: run_jumps(a.runs or range(5), a.inducing or [20], [2], JUMPS, 10),
    "inducing": lambda a: run_jumps(a.runs or range(5), a.inducing or [10, 30, 40, 50], [2], JUMPS, 10),
    "layers": lambda a: run_jumps(a.runs or range(5), a.inducing or [20], [1, 3, 4], JUMPS, 10),
    "time": lambda a: run_uci(["energy"], ["STRIDE, composition"], [0], PAPER, 50),
    "uci": lambda a: run_uci(a.datasets, a.models or UCI_MODELS[:8], a.folds or range(10), PAPER, 50),
    "fashion": lambda a: run_fashion(
        a.inducing or [25, 50, 75, 100, 125], a.models or list(FASHION_MODELS), a.runs or range(5), LARGE, 10
    ),
    "growth": lambda a: run_growth([1000, 4000, 16000, 60000], 50, ONE, 4),
}
QUICK: dict[str, Callable[[], Iterable[Record]]] = {
    "gains": lambda: run_gains([(500, 10, 50)]),
    "jumps": lambda: run_jumps([0], [10], [1], SHORT, 2),
    "uci": lambda: run_uci(["energy"], ["sparse GP", "STRIDE, composition, sparse"], [0], SHORT, 2),
    "growth": lambda: run_growth([500, 1000], 10, ONE, 2),
}


def main(argv: list[str] | None = None) -> Path:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS, default="gains")
    parser.add_argument("--datasets", nargs="+", default=["energy", "concrete", "boston"])
    parser.add_argument("--models", nargs="+", choices=sorted({*UCI_MODELS, *FASHION_MODELS}), metavar="MODEL")
    parser.add_argument("--folds", type=int, nargs="+", choices=range(10), help="of ten, counted from 0")
    parser.add_argument("--inducing", type=int, nargs="+", help="numbers of inducing points")
    parser.add_argument("--runs", type=int, nargs="+", help="random seeds of jumps, splits of fashion")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--name", help="of the result file, in place of the part's")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    if arguments.quick and arguments.results == RESULTS:
        arguments.results = Path(tempfile.mkdtemp())
    started, records, path = time.perf_counter(), [], arguments.results
    for record in QUICK[arguments.part]() if arguments.quick else PARTS[arguments.part](arguments):
        say(record)
        records.append(record)
        path = write(
            "stride",
            records,
            part=arguments.name or arguments.part,
            command=command_line("benchmarks.stride", sys.argv[1:] if argv is None else argv),
            precision="float64",
            seeds=list(arguments.runs or [0]),
            seconds=time.perf_counter() - started,
            peers={},
            folder=arguments.results,
        )
    return path


if __name__ == "__main__":
    main()
