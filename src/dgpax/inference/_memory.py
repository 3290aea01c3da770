"""Whether there is memory for what is about to be made."""

from __future__ import annotations

import os
from pathlib import Path

import jax

from ..errors import InputError

CGROUP = Path("/sys/fs/cgroup/memory.max")
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def refuse_beyond_memory(num_bytes: float | int, what: str, advice: str) -> None:
    """Raise if it takes more than all of the memory that there is, free or not."""
    limit = _of_device() or _of_machine()
    if limit is not None and num_bytes > limit:
        raise InputError(f"{what} needs about {_in_words(num_bytes)}, and there are {_in_words(limit)}. {advice}")


def _of_device() -> int | None:
    """That of an accelerator; CPUs don't say."""
    statistics = jax.local_devices()[0].memory_stats() or {}
    return statistics.get("bytes_limit")


def _of_machine() -> int | None:
    """That of the machine, or the part of it that a container may have."""
    try:
        limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    try:
        return min(limit, int(CGROUP.read_text()))
    except (OSError, ValueError):
        return limit


def _in_words(num_bytes: float | int) -> str:
    power = 0
    while num_bytes >= 1024 and power < len(UNITS) - 1:
        num_bytes, power = num_bytes / 1024, power + 1
    return f"{num_bytes:,.3g} {UNITS[power]}"
