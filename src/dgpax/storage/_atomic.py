"""Files that are there in full or as they were before, whenever the process or the machine stops."""

from __future__ import annotations

import os
import re
import secrets
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import ModelFileError

PARTIAL = ".partial"
"""How the name of a file ends while it is written."""
OLD = 3600.0
"""Seconds after which an unfinished file that nobody writes to is a leftover, whoever began it."""


def write_whole(path: Path, parts: Iterable[Any]) -> None:
    """Write these bytes, one part after the other, under another name first; then the name changes at once.

    The other name tells the machine and the process, so that what a killed one left behind can be told from a file
    that another is writing now. Leftovers of the same file are removed.
    """
    _refuse_impossible(path)
    _remove_leftovers(path)
    partial = path.with_name(f".{path.name}.{_machine()}.{os.getpid()}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        with partial.open("xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        _sync_folder(path.parent)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _refuse_impossible(path: Path) -> None:
    if not path.parent.is_dir():
        raise ModelFileError(
            f"{path} can't be written: there is no folder {path.parent}. Make it first, "
            f"Path({str(path.parent)!r}).mkdir(parents=True), or give another one."
        )
    if path.is_dir():
        raise ModelFileError(f"{path} can't be written: it is a folder. Give the name of a file, such as model.dgpax.")


def _remove_leftovers(path: Path) -> None:
    """Of writers of this file that are gone: those of this machine by their number, all others by their age."""
    named = re.compile(rf"\.{re.escape(path.name)}\.(?:(.+)\.(\d+)\.)?[0-9a-f]+{re.escape(PARTIAL)}")
    for left in path.parent.iterdir():
        match = named.fullmatch(left.name)
        if match is not None:
            with suppress(OSError):
                if _is_abandoned(left, match[1], match[2]):
                    left.unlink()


def _is_abandoned(left: Path, machine: str | None, process: str | None) -> bool:
    status = left.lstat()
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        return False
    if machine == _machine() and process is not None and not _is_alive(int(process)):
        return True
    return abs(time.time() - status.st_mtime) > OLD


def _is_alive(process: int) -> bool:
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _machine() -> str:
    return re.sub(r"[^\w-]", "-", socket.gethostname())[:40] or "machine"


def _sync_folder(folder: Path) -> None:
    """So that the new name outlives a power cut; where the system has no such thing, nothing happens."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
