"""STRIDE: `python -m benchmarks.stride --part jumps`. Parts: gains, jumps, time, uci; `quick` is a small one of each.

Data that isn't shipped must be in the data folder. `uci` takes hours on 2 cores with `--folds 10`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax

import dgpax
from dgpax import metrics
from dgpax.inducing import distinct_rows
from dgpax.kernels import RBF, Matern32
from dgpax.stride import (
    Composition,
    Convolution,
    CrossApproximation,
    FullySparse,
    Injective,
    Schedule,
    Standard,
    Stationary,
    StrideFit,
    collapsed_bound,
    exchange_rows,
    fit_stride,
)

from ._record import RESULTS, Record, command_line, write
from ._tables import Column, Table

TITLE = "STRIDE"
INTRODUCTION = """\
Sampled hidden layers and greedily chosen inducing points. Kernels are isotropic as in the paper, the noise of the 1-D
example is known, that of the others is the sparse GP's. The sparse GP has as many inducing points, chosen greedily from
the rows too. SMSE is on held-out rows (for the 1-D example on the true function), NLPD is the predictive density of the
mixture, MNLL the paper's equation (6)."""
SCORES = (
    Column("smse", "SMSE", ".5f"),
    Column("nlpd", "NLPD", ".3f"),
    Column("mnll", "MNLL", ".3f"),
    Column("seconds", "seconds to train", ".1f"),
    Column("seconds_predict", "to predict", ".3f"),
)
TABLES = (
    Table("Regression with jumps (Figures 1 and 3)", "jumps", ("model", "inducing", "hidden"), SCORES),
    Table("UCI, folds of ten (Figures 4 and 5)", "uci", ("dataset", "model"), SCORES),
    Table(
        title="One exchange of an inducing point: closed forms and direct evaluation",
        kind="gains",
        names=("rows", "inducing", "candidates"),
        columns=(
            Column("seconds", "seconds, closed form", ".3f"),
            Column("seconds_direct", "direct", ".3f"),
            Column("speedup", "ratio", ".1f"),
        ),
    ),
)
ISOTROPIC = RBF(3.0, 1.0)
SHORT = Schedule(num_iterations=2, num_steps=20, num_exchanges=2, num_candidates=50)


def jumps(x: np.ndarray) -> np.ndarray:
    """The function of Figure 1 [STRIDE, section 4.1]."""
    z = np.linspace(0.1, 0.4, 3001)
    bumps = np.exp(-((x[:, None] - z) ** 2) / 2e-4) / np.sqrt(2e-4 * np.pi)
    smooth = np.trapezoid(bumps * np.sin(np.pi * (z - 0.25) / 0.15), z, axis=1)
    return np.select([x <= 0.6, x <= 0.75, x <= 0.9], [smooth, -1.0, 1.0], 0.0)


def run_jumps(seeds: int, inducing: list[int], hidden: list[int], schedule: Schedule, particles: int) -> list[Record]:
    """SMSE of the exact, the sparse and the deep GP on the true function."""
    x, new = np.linspace(0, 1, 200)[:, None], np.linspace(0, 1, 1000)[:, None]
    truth, noise = jumps(new[:, 0])[:, None], 0.02**2
    records: list[Record] = []
    for seed in range(seeds):
        data = dgpax.dataset(x, jumps(x[:, 0]) + noise**0.5 * np.random.default_rng(seed).normal(size=200))
        known = {"kernel": Matern32(), "noise_variance": noise, "seed": seed}
        exact = fit_stride(data, Injective(), None, num_particles=1, schedule=NOTHING, **known)
        names = {"kind": "jumps", "seed": seed}
        records.append(names | {"model": "GP", "inducing": 0, "hidden": 0} | _shallow_scores(exact, new, truth))
        for m in inducing:
            for L in hidden:
                fitted = fit_stride(data, Injective(L), m, num_particles=particles, schedule=schedule, **known)
                at = {"inducing": m, "hidden": L}
                records.append(names | {"model": "STRIDE, injective"} | at | _scores(fitted, new, truth))
                if hidden[0] == L:
                    at = {"inducing": m, "hidden": 0}
                    records.append(names | {"model": "sparse GP"} | at | _shallow_scores(fitted, new, truth))
                _say(records[-1])
    return records


NOTHING = Schedule(num_iterations=0)
UCI_MODELS = {
    "STRIDE, composition": (Composition(), Standard(), 50),
    "STRIDE, composition, ACA": (Composition(), CrossApproximation(50), 50),
    "STRIDE, composition, sparse": (Composition(), FullySparse(), 50),
    "STRIDE, convolution": (Convolution(), Standard(), 50),
    "STRIDE, convolution, ACA": (Convolution(), CrossApproximation(50), 50),
    "STRIDE, convolution, sparse": (Convolution(), FullySparse(), 50),
    "deep GP, composition": (Composition(), Standard(), None),
}


def run_uci(datasets: list[str], models: list[str], folds: int, schedule: Schedule, particles: int) -> list[Record]:
    """Ten-fold cross-validation on distinct inputs."""
    records: list[Record] = []
    for name in datasets:
        whole = dgpax.load(name)
        kept = distinct_rows(jnp.asarray(whole.x))
        x, y = whole.x[kept], whole.y[kept].reshape(len(kept), -1)
        parts = np.array_split(np.random.default_rng(0).permutation(len(x)), 10)
        for fold, test in enumerate(parts[:folds]):
            train = np.setdiff1d(np.arange(len(x)), test)
            data = dgpax.dataset(x[train], y[train])
            start = {"kind": "uci", "dataset": name, "fold": fold}
            exact = fit_stride(data, Composition(), None, num_particles=1, schedule=NOTHING, kernel=ISOTROPIC)
            records.append(start | {"model": "GP"} | _shallow_scores(exact, x[test], y[test]))
            for model in models:
                architecture, hidden, inducing = UCI_MODELS[model]
                fitted = fit_stride(
                    data, architecture, inducing, hidden=hidden, num_particles=particles, schedule=schedule,
                    kernel=ISOTROPIC, seed=fold,
                )  # fmt: skip
                if model == models[0]:
                    records.append(start | {"model": "sparse GP"} | _shallow_scores(fitted, x[test], y[test]))
                    _say(records[-1])
                records.append(start | {"model": model} | _scores(fitted, x[test], y[test]))
                _say(records[-1])
    return records


def _scores(fitted: StrideFit, x: np.ndarray, y: np.ndarray) -> Record:
    fitted.predict(x)
    started = time.perf_counter()
    prediction = fitted.predict(x)
    jax.block_until_ready(prediction.mean)
    seconds = time.perf_counter() - started
    return _scored(prediction, fitted, y) | {"seconds": fitted.report.seconds, "seconds_predict": seconds} | {
        "acceptance": float(fitted.report.acceptance_rate[-1]), "r_hat": fitted.report.r_hat,
    }  # fmt: skip


def _shallow_scores(fitted: StrideFit, x: np.ndarray, y: np.ndarray) -> Record:
    """Of the one-layer GP that a fit started from."""
    prediction = dgpax.predict(fitted.initial.fitted, x)
    return _scored(prediction, fitted, y) | {"seconds": fitted.report.seconds_initial, "seconds_predict": None}


def _scored(prediction, fitted: StrideFit, y: np.ndarray) -> Record:
    return {
        "smse": float(metrics.smse(y, prediction)),
        "nlpd": float(metrics.nlpd(y, prediction)),
        "mnll": float(metrics.mnll_stride(y, prediction.mean, fitted.noise_variance)),
    }


def run_gains(cases: list[tuple[int, int, int]]) -> list[Record]:
    """Seconds of one exchange, by the closed forms and by evaluating F_V for every removal and every candidate."""
    records: list[Record] = []
    covariance, noise = Stationary(RBF(1.0, 1.0)), jnp.asarray(0.1)
    for n, m, candidates in cases:
        x = jr.normal(jr.key(0), (n, 4))
        y = jnp.sin(2 * x[:, :1]) + 0.3 * jr.normal(jr.key(1), (n, 1))
        rows = jnp.arange(m)

        def closed(x=x, y=y, rows=rows, candidates=candidates):
            return exchange_rows(
                covariance, x[None], y, noise, jnp.ones(x.shape[0], bool), rows,
                num_exchanges=1, num_candidates=candidates, particles_at_once=1, key=jr.key(2),
            )  # fmt: skip

        def direct(x=x, y=y, rows=rows, some=rows[-1] + 1 + jnp.arange(candidates)):  # noqa: B008
            return _direct_exchange(covariance, x, y, noise, rows, some)

        seconds, seconds_direct = _seconds(closed, 5), _seconds(direct, 1)
        names = {"kind": "gains", "rows": n, "inducing": m, "candidates": candidates}
        records.append(
            names | {"seconds": seconds, "seconds_direct": seconds_direct, "speedup": seconds_direct / seconds}
        )
        _say(records[-1])
    return records


@eqx.filter_jit
def _direct_exchange(covariance, x, y, noise, rows, candidates):
    m = rows.shape[0]

    def without(i):
        return jnp.where(jnp.arange(m - 1) < i, rows[:-1], rows[1:])

    def bound(some):
        return collapsed_bound(covariance, x, some, y, noise)

    kept = without(jnp.argmax(lax.map(lambda i: bound(without(i)), jnp.arange(m))))
    best = jnp.argmax(lax.map(lambda j: bound(jnp.append(kept, j)), candidates))
    return jnp.append(kept, candidates[best])


def _seconds(run: Callable, repetitions: int) -> float:
    jax.block_until_ready(run())
    times = []
    for _ in range(repetitions):
        started = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def _say(record: Record) -> None:
    print({key: round(value, 5) if isinstance(value, float) else value for key, value in record.items()}, flush=True)


PAPER, JUMPS = Schedule(), Schedule(num_steps=1000, num_candidates=200)
PARTS: dict[str, Callable[[argparse.Namespace], list[Record]]] = {
    "quick": lambda a: (
        run_gains([(500, 10, 50)])
        + run_jumps(1, [10], [1], SHORT, 2)
        + run_uci(["energy"], ["STRIDE, composition, sparse"], 1, SHORT, 2)
    ),
    "gains": lambda a: run_gains([(5000, 50, 500), (2000, 100, 100), (2000, 200, 200), (2000, 400, 400)]),
    "jumps": lambda a: run_jumps(5, [20], [1, 2, 3], JUMPS, 10),
    "inducing": lambda a: run_jumps(5, [10, 30, 40, 50], [3], JUMPS, 10),
    "time": lambda a: run_uci(["energy"], ["STRIDE, composition"], 1, PAPER, 50),
    "uci": lambda a: run_uci(a.datasets, a.models or list(UCI_MODELS)[:-1], a.folds, PAPER, 50),
}


def main(argv: list[str] | None = None) -> Path:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS, default="quick")
    parser.add_argument("--datasets", nargs="+", default=["energy", "concrete"])
    parser.add_argument("--models", nargs="+", choices=UCI_MODELS)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--name", help="of the result file, in place of the part's")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    started = time.perf_counter()
    return write(
        "stride",
        PARTS[arguments.part](arguments),
        part=arguments.name or arguments.part,
        command=command_line("benchmarks.stride", sys.argv[1:] if argv is None else argv),
        precision="float64",
        seeds=[0],
        seconds=time.perf_counter() - started,
        peers={},
        folder=arguments.results,
    )


if __name__ == "__main__":
    main()
