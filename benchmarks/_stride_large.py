"""STRIDE on large data: the features of Fashion-MNIST, and how the cost grows with the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import jax
import numpy as np

import dgpax
from dgpax.kernels import RBF
from dgpax.stride import (
    AbstractArchitecture,
    AbstractHiddenMethod,
    Composition,
    CrossApproximation,
    FullySparse,
    Residual,
    Schedule,
    Stride,
)

from ._record import Record
from ._stride_scores import Timed, deep_scores, shallow_scores

FASHION = "fashion_mnist_vae"
FASHION_MODELS: dict[str, tuple[AbstractArchitecture, AbstractHiddenMethod]] = {
    "STRIDE, composition, ACA": (Composition(), CrossApproximation(50)),
    "STRIDE, composition, sparse": (Composition(), FullySparse()),
    "STRIDE, residual, ACA": (Residual(), CrossApproximation(50)),
    "STRIDE, residual, sparse": (Residual(), FullySparse()),
}
PUBLISHED = {
    "sparse GP": ("0.3162", "0.2676", "0.2506", "0.2408", "0.2303"),
    "STRIDE": ("0.3380", "0.2310", "0.2181", "0.2091", "0.2049"),
}
PUBLISHED_ROWS = tuple(
    {"dataset": FASHION, "model": f"{model}, Latz et al. 2025, Table 1", "inducing": str(m), "smse": smse}
    for model, errors in PUBLISHED.items()
    for m, smse in zip((25, 50, 75, 100, 125), errors, strict=True)
)
HELD_OUT = 0.1


def run_fashion(
    inducing: Sequence[int],
    models: Sequence[str],
    runs: Sequence[int],
    schedule: Schedule,
    particles: int,
    max_rows: int | None = None,
) -> Iterator[Record]:
    """The class label regressed on 30 features; a random tenth is held out in every run [STRIDE, section 4.3]."""
    whole = dgpax.load(FASHION)
    x, y = np.asarray(whole.x, float), np.asarray(whole.y, float).reshape(-1, 1)
    kernel = RBF(np.full(x.shape[1], x.shape[1] ** 0.5), 1.0)
    for run in runs:
        order = np.random.default_rng(run).permutation(len(x))
        test, train = np.split(order, [int(HELD_OUT * len(x))])
        data = dgpax.dataset(x[train[:max_rows]], y[train[:max_rows]])
        for m in inducing:
            names = {"kind": "fashion", "dataset": FASHION, "run": run, "inducing": m, "rows": data.num_rows}
            sparse = Timed.of(data, m, kernel=kernel, num_candidates=schedule.num_candidates, seed=run)
            yield names | {"model": "sparse GP"} | shallow_scores(sparse, x[test], y[test])
            for model in models:
                architecture, hidden = FASHION_MODELS[model]
                method = Stride(m, particles, hidden, schedule=schedule, initial=sparse.initial)
                fitted = dgpax.fit(architecture, data, method, seed=run)
                yield names | {"model": model} | deep_scores(fitted, x[test], y[test])


def run_growth(rows: Sequence[int], inducing: int, schedule: Schedule, particles: int) -> list[Record]:
    """Seconds of one iteration, without compilation, and the exponent of the rows from the least to the most."""
    rng = np.random.default_rng(0)
    records: list[Record] = []
    seconds: list[float] = []
    for n in rows:
        x = rng.uniform(-2, 2, (n, 4))
        y = np.sin(2 * x[:, :1]) * x[:, 1:2] + 0.1 * rng.normal(size=(n, 1))
        data = dgpax.dataset(x, y)
        known = {"kernel": RBF(2.0, 1.0), "noise_variance": 0.01}
        method = Stride(inducing, particles, CrossApproximation(50), schedule=schedule, **known)
        fitted = dgpax.fit(Composition(), data, method)
        warm = dgpax.fit(Composition(), data, fitted.more(1))
        seconds.append(dgpax.fit(Composition(), data, warm.more(1)).report.seconds)
        names = {"kind": "growth", "rows": n, "inducing": inducing, "particles": particles}
        records.append(names | {"seconds": seconds[-1], "exponent": None, "peak_mib": _peak_mebibytes()})
    records[-1]["exponent"] = float(np.log(seconds[-1] / seconds[0]) / np.log(rows[-1] / rows[0]))
    return records


def _peak_mebibytes() -> float | None:
    """Most memory that an accelerator had in use so far; None on CPUs."""
    statistics = jax.local_devices()[0].memory_stats()
    return None if statistics is None else statistics["peak_bytes_in_use"] / 2**20
