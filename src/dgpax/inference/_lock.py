"""One fit at a time in a folder."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ..errors import InputError

try:
    import fcntl
except ImportError:  # a system without such locks
    fcntl = None

FILE = "checkpoint.lock"


@contextmanager
def only_here(folder: Path) -> Iterator[None]:
    """Raise `InputError` with the name of the other process if a fit is in this folder already.

    The system frees the lock of a process that is gone. Where files can't be locked or written, nothing is.
    """
    handle = _locked(folder / FILE)
    try:
        yield
    finally:
        if handle is not None:
            with suppress(OSError):
                (folder / FILE).unlink(missing_ok=True)
            handle.close()


def _locked(path: Path) -> IO[str] | None:
    while fcntl is not None:
        try:
            handle = path.open("a+")
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle.fileno()).st_ino == path.stat().st_ino:
                return _signed(handle)
        except BlockingIOError:
            handle.seek(0)
            owner = handle.read(200) or "a process without a name"
            handle.close()
            raise InputError(
                f"Another fit writes its checkpoints into {path.parent}: {owner}. Wait for its end, or give another "
                "folder: checkpoint is a folder of a fit's own."
            ) from None
        except FileNotFoundError:
            pass  # its owner has removed it meanwhile
        except OSError:
            handle.close()
            return None
        handle.close()
    return None


def _signed(handle: IO[str]) -> IO[str]:
    handle.truncate(0)
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    with suppress(OSError):
        handle.write(f"process {os.getpid()} on {socket.gethostname()}, since {since}")
        handle.flush()
    return handle
