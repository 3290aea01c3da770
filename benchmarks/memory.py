"""Peak memory of predicting many rows with many samples: `python -m benchmarks.memory`, on a CPU with Linux.

The measurement has a process of its own, as a peak can't be reset.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from ._record import RESULTS, ROOT, Record, command_line, write
from ._tables import Column, Table

NUM_COLUMNS = 8
NUM_INDUCING = 20
WIDTH = 2
TITLE = "Memory of a prediction"
INTRODUCTION = """\
`dgpax.predict` with a deep GP of two layers on 8 columns, float64. The peak is that of the process, above what it held
with the input in memory and the programs compiled; the answer, a mixture with a mean and a variance per row and sample,
is part of it."""
TABLES = (
    Table(
        title="Peak above the input",
        kind="memory",
        names=("rows", "samples", "layers"),
        columns=(
            Column("peak_gigabytes", "peak, GB", ".2f"),
            Column("answer_gigabytes", "of which the answer", ".2f"),
            Column("input_gigabytes", "input", ".3f"),
        ),
    ),
)


def measure(num_rows: int, num_samples: int) -> Record:
    """In this process: fit a small model, predict, and compare the peak with what was held before."""
    import dgpax
    from dgpax.inference import NaturalGradient

    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_rows, NUM_COLUMNS))
    few = dgpax.dataset(x[:200], np.sin(x[:200, :1]))
    model = dgpax.deep_gp(few, 2, NUM_INDUCING, width=WIDTH)
    engine = NaturalGradient(max_steps=50, steps_per_call=50)
    fitted = dgpax.fit(model, few, "variational", engine=engine, progress=False)
    jax.block_until_ready(dgpax.predict(fitted, x[: num_rows // 50], num_samples=num_samples).mean)
    held, started = _status("VmRSS"), time.perf_counter()
    prediction = jax.block_until_ready(dgpax.predict(fitted, x, num_samples=num_samples))
    seconds, peak = time.perf_counter() - started, _status("VmHWM")
    answer = sum(leaf.nbytes for leaf in jax.tree.leaves(prediction))
    return {
        "kind": "memory",
        "rows": num_rows,
        "samples": num_samples,
        "layers": 2,
        "peak_gigabytes": (peak - held) / 1e9,
        "answer_gigabytes": answer / 1e9,
        "input_gigabytes": x.nbytes / 1e9,
        "seconds": seconds,
    }


def _status(name: str) -> int:
    """Bytes of this process in memory, now (VmRSS) or at most (VmHWM); `getrusage` would count its parent's too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def main(arguments: Sequence[str]) -> Path | None:
    """Run, print, and record; the result file, if one was written."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--here", action="store_true", help="print the record of a measurement in this process")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen, started = parser.parse_args(arguments), time.perf_counter()
    if chosen.here:
        print(json.dumps(measure(chosen.rows, chosen.samples)))
        return None
    sizes = ["--rows", str(chosen.rows), "--samples", str(chosen.samples)]
    command = [sys.executable, "-m", "benchmarks.memory", "--here", *sizes]
    answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    record = json.loads(answer.stdout.splitlines()[-1])
    print(record)
    return write(
        "memory",
        [record],
        command=command_line("benchmarks.memory", arguments),
        precision="float64",
        seeds=[0],
        seconds=time.perf_counter() - started,
        peers={},
        folder=chosen.results,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
