"""The same fit of many rows from memory and from disk: `python -m benchmarks.scale`, on Linux.

Each measurement has a process of its own, as memory that was used can't be taken back.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ._record import RESULTS, ROOT, Record, command_line, write
from ._tables import Column, Table

NUM_INPUTS = 8
NUM_INDUCING = 50
BATCH_ROWS = 1_000
CHUNK_ROWS = 1_000_000
NOISE = 0.1
TEST_ROWS = 10_000
HEAD_ROWS = 20_000
SOURCES = ("memory", "disk")
TITLE = "Rows from memory and from disk"
INTRODUCTION = """\
A deep GP of two layers on 8 columns of float32, Adam that settles, batches of 1,000 rows: the same batches, and so the
same steps, from a `Dataset` in memory and from a mapped file by `dgpax.data.stream`. Anonymous memory is that of the
process without the pages of the file, which the system takes back when it needs them; "opened" is the time until the
first step, in which a stream reads all rows once and memory reads them in. Steps are timed without the first call."""
TABLES = (
    Table(
        title="One process",
        kind="scale",
        names=("rows", "source"),
        columns=(
            Column("rows_per_second", "rows/s in training", ",.0f"),
            Column("anonymous_gigabytes", "anonymous memory, GB", ".2f"),
            Column("rmse", "RMSE, noise 0.1", ".4f"),
            Column("opened_seconds", "opened, s", ".1f"),
        ),
    ),
)


def make(path: Path, num_rows: int) -> None:
    """The file, a chunk at a time."""
    rng = np.random.default_rng(0)
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(num_rows, NUM_INPUTS + 1))
    for start in range(0, num_rows, CHUNK_ROWS):
        rows[start : start + CHUNK_ROWS] = draw(rng, min(CHUNK_ROWS, num_rows - start))
    rows.flush()


def draw(rng: np.random.Generator, num_rows: int) -> np.ndarray:
    """Inputs, then a smooth function of them with noise."""
    x = rng.normal(size=(num_rows, NUM_INPUTS))
    f = np.sin(x[:, 0] + 0.5 * x[:, 1]) + 0.3 * x[:, 2] * np.tanh(x[:, 3])
    return np.column_stack([x, f + NOISE * rng.normal(size=num_rows)]).astype(np.float32)


def measure(path: Path, source: str, steps: int) -> Record:
    """In this process."""
    import dgpax
    from dgpax.data import InMemory, stream
    from dgpax.inference import Gradient, Settling

    started = time.perf_counter()
    mapped = np.load(path, mmap_mode="r")
    few = np.array(mapped[:HEAD_ROWS])
    if source == "disk":
        feed = stream(path, target=NUM_INPUTS, batch_size=BATCH_ROWS)
    else:
        whole = np.load(path)
        feed = InMemory(dgpax.dataset(whole[:, :NUM_INPUTS], whole[:, NUM_INPUTS]), BATCH_ROWS)
        del whole
    opened = time.perf_counter() - started
    model = dgpax.deep_gp(dgpax.dataset(few[:, :NUM_INPUTS], few[:, NUM_INPUTS]), 2, NUM_INDUCING)
    engine = Settling(engine=Gradient(), max_steps=steps, patience=steps, settle_steps=steps // 3, steps_per_call=25)
    clock, memory = [], []

    def look(progress: dgpax.inference.Progress) -> None:
        clock.append((progress.step, progress.seconds))
        memory.append(_anonymous())

    fitted = dgpax.fit(model, feed, "variational", engine=engine, callbacks=[look], progress=False)
    test = draw(np.random.default_rng(1), TEST_ROWS)
    error = np.asarray(dgpax.predict(fitted, test[:, :NUM_INPUTS]).mean)[:, 0] - test[:, NUM_INPUTS]
    (first, began), (last, ended) = clock[0], clock[-1]
    return {
        "kind": "scale",
        "source": source,
        "rows": len(mapped),
        "steps": steps,
        "rows_per_second": BATCH_ROWS * (last - first) / (ended - began),
        "anonymous_gigabytes": max(memory) / 1e9,
        "rmse": float(np.sqrt(np.mean(error**2))),
        "opened_seconds": opened,
    }


def _anonymous() -> int:
    """Bytes of this process that are no file's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))


def main(arguments: Sequence[str]) -> Path | None:
    """Run, print, and record; the result file, if one was written."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--here", nargs=2, metavar=("SOURCE", "FILE"), help="print a record made in this process")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen, started = parser.parse_args(arguments), time.perf_counter()
    if chosen.here:
        source, path = chosen.here
        print(json.dumps(measure(Path(path), source, chosen.steps)))
        return None
    records = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        make(path, chosen.rows)
        for source in SOURCES:
            command = [
                sys.executable,
                "-m",
                "benchmarks.scale",
                "--steps",
                str(chosen.steps),
                "--here",
                source,
                str(path),
            ]
            answer = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
            records.append(json.loads(answer.stdout.splitlines()[-1]))
            print(records[-1], flush=True)
    return write(
        "scale",
        records,
        command=command_line("benchmarks.scale", arguments),
        precision="float32",
        seeds=[0],
        seconds=time.perf_counter() - started,
        peers={},
        folder=chosen.results,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
