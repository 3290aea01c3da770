"""One JSON file per run: the numbers, and what it takes to judge and repeat them."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

import dgpax

SCHEMA = 1
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
WRITTEN_BY_BENCHMARKS = ("benchmarks/results", "docs/results.md", "docs/results")

Record = dict[str, str | int | float | bool | None]


def write(
    benchmark: str,
    records: Sequence[Record],
    *,
    command: str,
    precision: str,
    seeds: Sequence[int],
    seconds: float,
    peers: Mapping[str, Mapping[str, str]],
    folder: Path = RESULTS,
    part: str | None = None,
) -> Path:
    """Write `<benchmark>-<yyyy-mm-dd>-<commit>.json`; `peers` maps a rival's name to the versions that it ran with.

    `part` names a run that measures some of a benchmark's rows, and stands in the file's name too.
    """
    commit, dirty = _commit()
    now = datetime.now(UTC)
    content = {
        "schema": SCHEMA,
        "benchmark": benchmark,
        **({} if part is None else {"part": part}),
        "command": command,
        "commit": commit,
        "dirty": dirty,
        "date": now.isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("jax", "numpy")}
        | {"dgpax": dgpax.__version__},
        "peers": {name: dict(versions) for name, versions in peers.items()},
        "precision": precision,
        "seeds": list(seeds),
        "seconds": round(seconds, 1),
        "records": [{name: _finite(value) for name, value in record.items()} for record in records],
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{benchmark if part is None else f'{benchmark}-{part}'}-{now:%Y-%m-%d}-{commit[:7]}.json"
    path.write_text(json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")
    return path


def command_line(module: str, arguments: Sequence[str]) -> str:
    """The command as typed, with PATH in place of absolute paths: they mean nothing elsewhere."""

    def portable(word: str) -> str:
        option, equals, value = word.rpartition("=")
        return f"{option}{equals}PATH" if Path(value).is_absolute() else word

    return " ".join(["python -m", module, *map(portable, arguments)])


def machine() -> dict[str, Any]:
    """What the numbers depend on, without names or paths."""
    accelerators = sorted({device.device_kind for device in jax.devices() if device.platform != "cpu"})
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "accelerator": ", ".join(accelerators) or None,
        "threads": {name: os.environ[name] for name in THREADS if name in os.environ},
    }


def _cpu_model() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> tuple[str, bool]:
    """The commit, and whether anything but the benchmarks' own output differs from it.

    A copy of the tree without git, on a device machine, is told by the variable DGPAX_COMMIT, set from a clean tree.
    """
    if "DGPAX_COMMIT" in os.environ:
        return os.environ["DGPAX_COMMIT"], False
    try:
        commit = _git("rev-parse", "HEAD")
        changes = _git("status", "--porcelain", "--", ".", *(f":(exclude){path}" for path in WRITTEN_BY_BENCHMARKS))
    except (OSError, subprocess.CalledProcessError):
        return "unknown", True
    return commit, bool(changes)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _finite(value):
    return None if isinstance(value, float) and not math.isfinite(value) else value
