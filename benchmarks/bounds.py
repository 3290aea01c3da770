"""The ELBO by natural gradients and by Adam, against steps and seconds: `python -m benchmarks.bounds`, for one GPU.

`--quick` is for 2 cores. The picture in docs/deep.md is made from the result file by `docs/make_bounds.py`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import dgpax
from dgpax.inference import AbstractEngine, Gradient, NaturalGradient, NeverStop, Variational, flat_adam

from ._record import RESULTS, Record, command_line, write
from ._steps_dgpax import Clock
from ._tables import Column, Table

WINDOW = 100
POINTS = 100
TITLE = "Natural gradients against Adam"
INTRODUCTION = """\
The ELBO of `dgpax.dsvi` models on the first training split, by natural gradients (0.1, Adam 0.05 for the rest; one
setting for all) and by Adam (0.01) on everything, from the same start. Bounds are means over seeds and over the last
100 steps. The first step is that at which natural gradients are above what Adam has at its end, within their 5,000
steps. Seconds are for all seeds together, in one program, without compilation; on kin8nm Adam has half as
many seeds, so that its seconds say little beside the others. A fit has diverged if it was given up or ends below where
it was after a tenth of its steps; rejected steps are those that weren't finite."""
TABLES = (
    Table(
        title="Steps until the bound of Adam's last step",
        kind="crossing",
        names=("dataset", "layers"),
        columns=(
            Column("adam_steps", "steps, Adam", ".0f"),
            Column("adam_bound", "ELBO", ".1f"),
            Column("adam_seconds", "seconds", ".1f"),
            Column("first_step", "first step, natural", ".0f"),
            Column("first_seconds", "seconds", ".1f"),
            Column("natural_bound", "ELBO at the end", ".1f"),
            Column("wanted_steps", "wanted, at most", ".0f"),
        ),
    ),
    Table(
        title="Divergence",
        kind="stability",
        names=("dataset", "layers", "by", "seeds"),
        columns=(
            Column("diverged", "fits that diverged", ".0f"),
            Column("rejected_steps", "rejected steps, all fits", ".0f"),
            Column("milliseconds", "ms per step, all fits", ".2f"),
        ),
    ),
)


class Task(NamedTuple):
    """What is trained, and in how many natural steps it should be where Adam ends."""

    dataset: str
    num_layers: int
    wanted_steps: int
    adam_seeds: int = 20


class Curve(NamedTuple):
    """The bounds of all seeds, smoothed, and the time of every step."""

    bounds: np.ndarray
    seconds: np.ndarray
    diverged: int
    rejected: int

    @property
    def mean(self) -> np.ndarray:
        return self.bounds.mean(axis=0)

    @property
    def milliseconds(self) -> float:
        return float(1e3 * self.seconds[-1] / len(self.seconds))


TASKS = (Task("energy", 2, 3_000), Task("concrete", 3, 3_000), Task("kin8nm", 2, 5_000, adam_seeds=10))
ENGINES = {"adam": Gradient, "natural": partial(NaturalGradient, optimiser=flat_adam(0.05))}
STEPS = {"adam": 10_000, "natural": 5_000}


def train(task: Task, name: str, num_seeds: int, num_steps: int, num_inducing: int) -> Curve:
    """All seeds at once, on the same rows; a seed is that of the samples."""
    data, _ = dgpax.load(task.dataset).split(0)
    model = dgpax.dsvi(data, task.num_layers, num_inducing)
    engine: AbstractEngine = ENGINES[name](max_steps=num_steps, steps_per_call=min(100, num_steps // 4))
    clock = Clock()
    fits = dgpax.fit_many(
        [model] * num_seeds,
        [data] * num_seeds,
        Variational(),
        engine=engine,
        seeds=range(num_seeds),
        stopping=lambda index: clock if index == 0 else NeverStop(),
        progress=False,
    )
    reports = [fitted.report for fitted in fits]
    length = min(len(report.history) for report in reports)
    bounds = np.stack([smoothed(report.history[:length]) for report in reports])
    diverged = [
        report.steps < num_steps or not b[-1] > b[length // 10] for report, b in zip(reports, bounds, strict=True)
    ]
    seconds = times(clock.readings, engine.steps_per_call, length)
    return Curve(bounds, seconds, sum(diverged), sum(report.rejected_steps for report in reports))


def smoothed(history: np.ndarray, window: int = WINDOW) -> np.ndarray:
    """The mean of the last `window` values, of fewer at the beginning."""
    total = np.concatenate([[0.0], np.cumsum(history)])
    ends = np.arange(1, len(total))
    starts = np.maximum(ends - window, 0)
    return (total[ends] - total[starts]) / (ends - starts)


def times(readings: Sequence[float], steps_per_call: int, num_steps: int) -> np.ndarray:
    """Seconds after every step; the first call, which compiles, is given the time of a usual one."""
    calls = np.diff(readings)
    ends = np.cumsum([np.median(calls), *calls])
    known = steps_per_call * np.arange(len(ends) + 1)
    return np.interp(np.arange(1, num_steps + 1), known, [0.0, *ends])


def first_above(bounds: np.ndarray, level: float) -> int | None:
    """The step, counted from 1, at which a curve is first above a level."""
    above = np.flatnonzero(bounds > level)
    return int(above[0]) + 1 if len(above) else None


def records_of(task: Task, curves: dict[str, Curve], seeds: dict[str, int]) -> list[Record]:
    """The crossing, how stable both were, and points of both curves."""
    labels: Record = {"dataset": task.dataset, "layers": task.num_layers}
    adam, natural = curves["adam"], curves["natural"]
    step = first_above(natural.mean, float(adam.mean[-1]))
    crossing: Record = {
        "kind": "crossing",
        "adam_steps": len(adam.mean),
        "adam_bound": float(adam.mean[-1]),
        "adam_seconds": float(adam.seconds[-1]),
        "first_step": step,
        "first_seconds": None if step is None else float(natural.seconds[step - 1]),
        "natural_bound": float(natural.mean[-1]),
        "wanted_steps": task.wanted_steps,
    }
    records = [labels | crossing]
    for name, curve in curves.items():
        stability: Record = {"diverged": curve.diverged, "rejected_steps": curve.rejected}
        stability |= {"milliseconds": curve.milliseconds}
        records.append(labels | {"kind": "stability", "by": name, "seeds": seeds[name]} | stability)
        for index in np.unique(np.linspace(0, len(curve.mean) - 1, POINTS).astype(int)).tolist():
            column = curve.bounds[:, index]
            point: Record = {"step": index + 1, "seconds": float(curve.seconds[index]), "bound": float(column.mean())}
            point |= {"lowest": float(column.min()), "highest": float(column.max())}
            records.append(labels | {"kind": "curve", "by": name} | point)
    return records


def main(arguments: Sequence[str]) -> Path:
    """Run, print, and record after every dataset."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bounds", description=__doc__)
    parser.add_argument("--datasets", nargs="+", choices=[task.dataset for task in TASKS])
    parser.add_argument("--quick", action="store_true", help="tiny, to try it out")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen, started, records, path = parser.parse_args(arguments), time.perf_counter(), [], None
    for task in TASKS:
        if task.dataset not in (chosen.datasets or [task.dataset]):
            continue
        seeds = {"adam": task.adam_seeds, "natural": 20}
        steps, num_inducing = STEPS, 100
        if chosen.quick:
            seeds, steps, num_inducing = dict.fromkeys(seeds, 2), {"adam": 12, "natural": 8}, 10
        curves = {name: train(task, name, seeds[name], steps[name], num_inducing) for name in ENGINES}
        records += records_of(task, curves, seeds)
        crossing = next(record for record in reversed(records) if record["kind"] == "crossing")
        print(", ".join(f"{name} {value}" for name, value in crossing.items()), flush=True)
        print(
            {name: (curve.diverged, curve.rejected, curve.milliseconds) for name, curve in curves.items()}, flush=True
        )
        path = write(
            "bounds",
            records,
            command=command_line("benchmarks.bounds", arguments),
            precision="float64",
            seeds=list(range(20)),
            seconds=time.perf_counter() - started,
            peers={},
            folder=chosen.results,
        )
    assert path is not None
    return path


if __name__ == "__main__":
    main(sys.argv[1:])
