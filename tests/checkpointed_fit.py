"""A small fit of 2,000 steps with checkpoints, for a process that is killed: python checkpointed_fit.py folder."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import dgpax
from dgpax.inference import Gradient, Variational

EVERY, PAUSE = 0.2, 0.03
ENGINE = Gradient(batch_size=8, max_steps=2000)


def run(folder: Path | None, callbacks=()) -> dgpax.Fit:
    x = np.linspace(-1, 1, 24)[:, None]
    data = dgpax.dataset(x, np.sin(4 * x))
    return dgpax.fit(
        dgpax.sparse_gp_regression(data, 4),
        data,
        Variational(),
        engine=ENGINE,
        seed=3,
        checkpoint=folder,
        checkpoint_every=EVERY,
        callbacks=callbacks,
    )


def say_and_wait(progress: dgpax.inference.Progress) -> None:
    """Slow enough to be killed on the way; the pause is after the checkpoint of the call before."""
    print(progress.step, flush=True)
    time.sleep(PAUSE)


if __name__ == "__main__":
    run(Path(sys.argv[1]), callbacks=[say_and_wait])
