"""What the system asks of a fit that keeps checkpoints."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

ENDED_BY_SIGTERM = 128 + 15


@dataclass
class Asked:
    """`to_write`: where the fit stands, now; `to_end`: the process, after that. Mutable."""

    to_write: bool = False
    to_end: bool = False

    def obey(self) -> None:
        """Called after writing: end the process if that was asked for."""
        self.to_write = False
        if self.to_end:
            raise SystemExit(ENDED_BY_SIGTERM)


@contextmanager
def listening() -> Iterator[Asked]:
    """SIGUSR1 asks to write, SIGTERM to write and to end. The handlers there were before come back afterwards.

    A signal that the process was told to ignore stays ignored, and in threads other than the main one, to which Python
    gives no signals, nothing is asked.
    """
    asked, before = Asked(), {}

    def write(*_):
        asked.to_write = True

    def write_and_end(*_):
        asked.to_write = asked.to_end = True

    if threading.current_thread() is threading.main_thread():
        for name, handler in (("SIGUSR1", write), ("SIGTERM", write_and_end)):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, handler)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
