"""The stopwatch of the peers of the steps benchmark: the same protocol as dgpax's own loop."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path


def timed(step: Callable, synchronise: Callable, num_runs: int, steps: int) -> dict:
    """Milliseconds per step of every run of `steps` steps but the first two.

    `step` returns the bound per row, which is read only at the end; the device is waited for once per run.
    """
    milliseconds, bounds = [], []
    for _ in range(num_runs):
        started = time.perf_counter()
        bounds += [step() for _ in range(steps)]
        synchronise()
        milliseconds.append(1e3 * (time.perf_counter() - started) / steps)
    return {"milliseconds": milliseconds[2:], "elbo_start": float(bounds[0]), "elbo_end": float(bounds[-1])}


def answered(path: str, answer: dict) -> None:
    Path(path).write_text(json.dumps(answer), "utf-8")
