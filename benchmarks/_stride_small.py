"""STRIDE on small data: the function with jumps, and UCI."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import jax.numpy as jnp
import numpy as np

import dgpax
from dgpax.inducing import distinct_rows
from dgpax.kernels import RBF, Matern32
from dgpax.stride import (
    AbstractArchitecture,
    AbstractHiddenMethod,
    Composition,
    Convolution,
    CrossApproximation,
    FullySparse,
    Injective,
    Residual,
    Schedule,
    Standard,
    Stride,
)

from ._record import Record
from ._stride_scores import Timed, deep_scores, shallow_scores

ISOTROPIC = RBF(3.0, 1.0)
ARCHITECTURES: dict[str, AbstractArchitecture] = {
    "composition": Composition(),
    "convolution": Convolution(),
    "residual": Residual(),
    "composition, 3 layers": Composition(2),
}
HIDDEN: dict[str, AbstractHiddenMethod] = {"": Standard(), ", ACA": CrossApproximation(50), ", sparse": FullySparse()}
STRIDE = {f"STRIDE, {a}{h}": (A, H) for a, A in ARCHITECTURES.items() for h, H in HIDDEN.items()}
DEEP = {f"deep GP, {name}": ARCHITECTURES[name] for name in ("composition", "convolution")}
UCI_MODELS = ("GP", "sparse GP", *STRIDE, *DEEP)
JUMP_MODELS = {"STRIDE, injective": 0, "STRIDE, injective, EM updates": 20}
"""Steps on the top layer's hyperparameters in every maximisation; the paper has none."""
NUM_INDUCING = 50
PUBLISHED_TIMES = tuple(
    {"dataset": "energy", "model": f"{model}, Latz et al. 2025", "seconds": seconds, "seconds_predict": predict}
    for model, seconds, predict in (("STRIDE, composition", "1069", "0.095"), ("deep GP, composition", "3116", "12.74"))
)


def jumps(x: np.ndarray) -> np.ndarray:
    """The function of Figure 1 [STRIDE, section 4.1]."""
    z = np.linspace(0.1, 0.4, 3001)
    bumps = np.exp(-((x[:, None] - z) ** 2) / 2e-4) / np.sqrt(2e-4 * np.pi)
    smooth = np.trapezoid(bumps * np.sin(np.pi * (z - 0.25) / 0.15), z, axis=1)
    return np.select([x <= 0.6, x <= 0.75, x <= 0.9], [smooth, -1.0, 1.0], 0.0)


def run_jumps(
    seeds: Sequence[int], inducing: Sequence[int], hidden: Sequence[int], schedule: Schedule, particles: int
) -> Iterator[Record]:
    """SMSE of the exact, the sparse and the deep GP on the true function."""
    x, new = np.linspace(0, 1, 200)[:, None], np.linspace(0, 1, 1000)[:, None]
    truth, noise = jumps(new[:, 0])[:, None], 0.02**2
    for seed in seeds:
        data = dgpax.dataset(x, jumps(x[:, 0]) + noise**0.5 * np.random.default_rng(seed).normal(size=200))
        known = {"kernel": Matern32(), "noise_variance": noise, "seed": seed}
        exact = Timed.of(data, None, **known)
        names = {"kind": "jumps", "seed": seed}
        yield names | {"model": "GP", "inducing": 0, "hidden": 0} | shallow_scores(exact, new, truth)
        for m in inducing:
            sparse = Timed.of(data, m, **known)
            at = {"model": "sparse GP", "inducing": m, "hidden": 0}
            yield names | at | shallow_scores(sparse, new, truth)
            for L, (model, updates) in itertools.product(hidden, JUMP_MODELS.items()):
                steps = replace(schedule, num_updates=updates)
                method = Stride(m, particles, schedule=steps, initial=sparse.initial)
                fitted = dgpax.fit(Injective(L), data, method, seed=seed)
                at = {"model": model, "inducing": m, "hidden": L}
                yield names | at | deep_scores(fitted, new, truth)


def run_uci(
    datasets: Sequence[str], models: Sequence[str], folds: Sequence[int], schedule: Schedule, particles: int
) -> Iterator[Record]:
    """Folds of ten on distinct inputs; all have as many training rows, so that nothing is compiled twice."""
    for name in datasets:
        whole = dgpax.load(name)
        kept = distinct_rows(jnp.asarray(whole.x))
        x, y = whole.x[kept], whole.y[kept].reshape(len(kept), -1)
        parts = np.array_split(np.random.default_rng(0).permutation(len(x)), 10)
        num_rows = len(x) - max(map(len, parts))
        for fold in folds:
            train = np.concatenate([part for i, part in enumerate(parts) if i != fold])[:num_rows]
            data, test = dgpax.dataset(x[train], y[train]), parts[fold]
            names = {"kind": "uci", "dataset": name, "fold": fold}
            for record in _fold(data, x[test], y[test], models, schedule, particles, fold):
                yield names | record


def _fold(data, x, y, models: Sequence[str], schedule: Schedule, particles: int, seed: int):
    """Records of one fold; the one-layer GPs are trained once for all models that start from them."""
    at = {"kernel": ISOTROPIC, "seed": seed}
    if set(models) & {"GP", *DEEP}:
        exact = Timed.of(data, None, **at)
        if "GP" in models:
            yield {"model": "GP"} | shallow_scores(exact, x, y)
        for model in (m for m in models if m in DEEP):
            method = Stride(None, particles, schedule=schedule, initial=exact.initial)
            yield {"model": model} | deep_scores(dgpax.fit(DEEP[model], data, method, seed=seed), x, y)
    if set(models) & {"sparse GP", *STRIDE}:
        sparse = Timed.of(data, NUM_INDUCING, **at)
        if "sparse GP" in models:
            yield {"model": "sparse GP"} | shallow_scores(sparse, x, y)
        for model in (m for m in models if m in STRIDE):
            architecture, hidden = STRIDE[model]
            method = Stride(NUM_INDUCING, particles, hidden, schedule=schedule, initial=sparse.initial)
            yield {"model": model} | deep_scores(dgpax.fit(architecture, data, method, seed=seed), x, y)
