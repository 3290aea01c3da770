"""Where the time of a step goes, kernel by kernel: `python -m benchmarks.kernels --case large`, on one GPU.

A tool for those who speed things up; it leaves no result file. The steps are those of `benchmarks.steps`, in the loop
of `fit`, but without CUDA graphs, which the profiler can't look into. What `fit` does before and after its steps is
counted in.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dgpax.inference import Gradient, NaturalGradient

from ._steps_dgpax import Clock, build, datasets_of, train
from .steps import CASES, problem

ENGINES = {"adam": Gradient, "natural": NaturalGradient}
PROFILED_STEPS = 20


def main(arguments: Sequence[str]) -> None:
    """Time the steps, then print the kernels with the most time."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
    parser.add_argument("--case", choices=CASES, default="large")
    parser.add_argument("--engine", choices=ENGINES, default="adam")
    parser.add_argument("--top", type=int, default=40, help="how many kernels to show")
    parser.add_argument("--quick", action="store_true", help="tiny, to try it out")
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("XLA_FLAGS", "--xla_gpu_enable_command_buffer=")
    jax.config.update("jax_enable_x64", True)
    case = CASES[chosen.case][0].quick() if chosen.quick else CASES[chosen.case][0]
    given = problem(case, quick=chosen.quick)
    datasets, clock = datasets_of(given), Clock()
    engine = ENGINES[chosen.engine](steps_per_call=PROFILED_STEPS // 2, max_steps=10 * PROFILED_STEPS)
    train(build(given), datasets, engine, clock)
    milliseconds = 1e3 * np.median(np.diff(clock.readings[1:])) / engine.steps_per_call
    print(f"{case}: {milliseconds:.3f} ms a step")
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            train(build(given), datasets, replace(engine, max_steps=PROFILED_STEPS), Clock())
        (path,) = Path(folder).rglob("*.xplane.pb")
        show(jax.profiler.ProfileData.from_file(str(path)), chosen.top)


def show(data: Any, top: int) -> None:
    """Microseconds and calls per step, the largest first."""
    for line in (line for plane in data.planes if "GPU" in plane.name for line in plane.lines):
        nanoseconds, calls = Counter(), Counter()
        for event in line.events:
            nanoseconds[event.name] += round(event.duration_ns)
            calls[event.name] += 1
        print(f"{line.name}: {_per_step(nanoseconds.total()) / 1e3:.1f} us, {_per_step(calls.total()):.0f} calls")
        for name, time in nanoseconds.most_common(top):
            print(f"{_per_step(time) / 1e3:9.2f} us {_per_step(calls[name]):6.1f} x {name[:100]}")


def _per_step(total: float) -> float:
    return total / PROFILED_STEPS


if __name__ == "__main__":
    main(sys.argv[1:])
