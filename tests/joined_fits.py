"""Fits that a process does alone or with others, and writes down.

`python joined_fits.py port count number folder cases...` leaves `{count}-{number}.npz` in the folder: the numbers that
every case trained, and how many collectives its compiled program has. In a case that ends in "!" process 1 kills itself
on the way, and in one that ends in "?" it has other data.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax

import dgpax
from dgpax import distributed
from dgpax.data import InMemory, Streamed, stream
from dgpax.errors import DgpaxError
from dgpax.inference import LBFGS, Gradient, NaturalGradient, Settling, Sparse, Variational

STEPS, KILLED_AT = 50, 20
SEARCHED = 8
"""Of L-BFGS, whose line searches make rounding errors grow."""
RNG = np.random.default_rng(0)
X = RNG.normal(size=(61, 2))
Y = np.sin(X.sum(axis=1)) + 0.1 * RNG.normal(size=61)
OPTIMISER = optax.adam(0.01, eps=1e-3)
"""With the usual eps it makes a step out of the rounding errors of a gradient that is zero."""
DEEP: dict[str, Any] = {"max_steps": STEPS, "steps_per_call": 10}


@cache
def _data(shift: float = 0.0) -> dgpax.Dataset:
    """Made when the processes have joined."""
    return dgpax.dataset(X, Y + shift)


def _stream(shift: float = 0.0) -> Streamed:
    return stream(np.column_stack([X, Y + shift]), target=2, batch_size=20)


def _deep(posterior: str, engine, data):
    return dgpax.deep_gp(_data(), 2, 5), data, Variational(posterior, chunk_rows=7), engine


CASES = {
    "gradient": lambda: _deep("mean-field", Gradient(optimiser=OPTIMISER, **DEEP), InMemory(_data(), batch_size=21)),
    "natural": lambda: _deep("mean-field", NaturalGradient(optimiser=OPTIMISER, **DEEP), _stream()),
    "settling": lambda: _deep(
        "stripes-and-arrow", Settling(engine=NaturalGradient(optimiser=OPTIMISER), settle_steps=20, **DEEP), _data()
    ),
    "lbfgs": lambda: (dgpax.deep_gp(_data(), 1, 5), _data(), Variational(), LBFGS(max_steps=SEARCHED)),
    "collapsed": lambda: (
        dgpax.sparse_gp_regression(_data(), 5),
        _data(),
        Sparse(chunk_rows=7),
        LBFGS(max_steps=SEARCHED),
    ),
}


def run(case: str, folder: Path, number: int) -> dict[str, np.ndarray]:
    name = case.rstrip("!?")
    model, data, method, engine = CASES[name]()
    if case.endswith("?") and number == 1:
        data = _stream(1e-9)

    def stop(progress):
        if progress.step >= KILLED_AT:
            os.kill(os.getpid(), signal.SIGKILL)

    callbacks = [stop] if case.endswith("!") and number == 1 else []
    kept = folder / "checkpoint" if (folder / "checkpoint").exists() else None
    fitted = dgpax.fit(
        model, data, method, engine=engine, callbacks=callbacks, progress=False, checkpoint=kept, checkpoint_every=0.0
    )
    leaves = jax.tree.leaves((fitted.model, fitted.posterior))
    found = {f"{name} {place}": np.asarray(leaf) for place, leaf in enumerate(leaves) if not isinstance(leaf, str)}
    found[f"{name} history"] = fitted.report.history
    found[f"{name} resumed"] = np.asarray(fitted.report.resumed_at)
    texts = [program.compiled.as_text() for program in distributed._programs.values()]  # pyright: ignore
    distributed._programs.clear()
    pattern = r" (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)[a-z-]*\("
    found[f"{name} collectives"] = np.asarray([len(re.findall(pattern, text)) for text in texts])
    return found


def main(port: str, count: int, number: int, folder: Path, cases: list[str]) -> None:
    if count > 1:
        distributed.initialize(f"127.0.0.1:{port}", count, number)
    found = {}
    try:
        for case in cases:
            found |= run(case, folder, number)
    except DgpaxError as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        sys.exit(3)
    np.savez(folder / f"{count}-{number}.npz", **found)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), sys.argv[5:])
