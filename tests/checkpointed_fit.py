"""A small fit of 2,000 steps with checkpoints, for a process that kills itself on the way.

`python checkpointed_fit.py folder step delay` prints every step and when it was, and is gone `delay` seconds after
`step`. Its own clock, and a kill from within, make what it does a matter of its own time, however busy the machine is.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

import dgpax
from dgpax.data import InMemory
from dgpax.inference import Gradient, Variational

EVERY, PAUSE = 0.2, 0.03
ENGINE = Gradient(max_steps=2000)


def run(folder: Path | None, callbacks=()) -> dgpax.Fit:
    x = np.linspace(-1, 1, 24)[:, None]
    data = dgpax.dataset(x, np.sin(4 * x))
    return dgpax.fit(
        dgpax.sparse_gp_regression(data, 4),
        InMemory(data, batch_size=8),
        Variational(),
        engine=ENGINE,
        seed=3,
        checkpoint=folder,
        checkpoint_every=EVERY,
        callbacks=callbacks,
    )


def killed_after(step: int, delay: float):
    """Slow enough to be killed on the way; the pause is before the step's own checkpoint."""
    killer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL))

    def say_and_wait(progress: dgpax.inference.Progress) -> None:
        sys.stdout.write(f"{progress.step} {time.perf_counter()}\n")
        sys.stdout.flush()
        if progress.step == step:
            killer.start()
        time.sleep(PAUSE)

    return say_and_wait


if __name__ == "__main__":
    run(Path(sys.argv[1]), callbacks=[killed_after(int(sys.argv[2]), float(sys.argv[3]))])
