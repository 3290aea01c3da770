"""Models and steps of the framework benchmark, and how they are timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from dgpax import DeepGP, GPLayer
from dgpax.data import Dataset
from dgpax.inducing import AbstractInducing, Fourier, OutputPairs, OutputPoints, Points
from dgpax.inference import ModelAndPosterior, Variational
from dgpax.kernels import LMC, RBF, AbstractKernel, AbstractMultiOutputKernel, Matern32
from dgpax.likelihoods import GaussianNoise
from dgpax.objectives import FourierStatistics, collapsed_bound, collapsed_bound_from

Step = Callable[[], Any]


@dataclass(frozen=True)
class Size:
    """Of an LMC: N rows, P outputs, L latent processes, M inducing locations (pairs: M in all)."""

    N: int
    P: int
    L: int
    M: int


@eqx.filter_jit
@eqx.filter_value_and_grad
def _elbo(target: ModelAndPosterior, data: Dataset):
    return Variational().terms(target, data, jr.key(0)).total


@eqx.filter_jit
@eqx.filter_value_and_grad
def _bound(model: DeepGP, data: Dataset):
    return collapsed_bound(model, data).total


@eqx.filter_jit
@eqx.filter_value_and_grad
def _bound_from_statistics(model: DeepGP, statistics: FourierStatistics):
    return collapsed_bound_from(statistics, model).total


def coregionalisation_step(inducing: str, size: Size) -> Step:
    """A step of the ELBO for an LMC; `inducing` says where the inducing variables live."""
    rng = np.random.default_rng(0)
    W = jnp.asarray(rng.normal(size=(size.P, size.L)))
    z = jnp.linspace(-1.0, 1.0, size.M)[:, None]
    kernel = LMC(RBF(jnp.linspace(0.05, 0.1, size.L)[:, None], jnp.ones(size.L)), W)
    variables: dict[str, Callable[[], AbstractInducing]] = {
        "vector": lambda: OutputPoints(z, size.P),
        "pairs": lambda: OutputPairs(z, jnp.arange(size.M) % size.P),
        "latent": lambda: Points(z),
    }
    return _variational_step(kernel, variables[inducing](), _data(size.N, size.P))


def variational_step(inducing: str, num_rows: int, num_inducing: int) -> Step:
    """A step of the ELBO of one function of one input, by "features" or "points"."""
    return _variational_step(Matern32(0.2), _on_a_line(inducing, num_inducing), _data(num_rows, 1))


def collapsed_step(inducing: str, num_rows: int, num_inducing: int) -> Step:
    """A step of the hyperparameters by the collapsed bound; features have read the data before."""
    data = _data(num_rows, 1)
    layer = GPLayer(Matern32(0.2), inducing=_on_a_line(inducing, num_inducing))
    model = DeepGP(layer, GaussianNoise(0.05))
    if inducing == "points":
        return lambda: _bound(model, data)
    statistics = FourierStatistics.of(model, data)
    return lambda: _bound_from_statistics(model, statistics)


def fastest(steps: Sequence[Step], seconds: float) -> list[float]:
    """The shortest time of each step, compiled before; they take turns until `seconds` are over, twice at least."""
    times: list[list[float]] = [[] for _ in steps]
    for step in steps:
        jax.block_until_ready(step())
    started = time.perf_counter()
    while len(times[0]) < 2 or time.perf_counter() - started < seconds:
        for step, own in zip(steps, times, strict=True):
            begun = time.perf_counter()
            jax.block_until_ready(step())
            own.append(time.perf_counter() - begun)
    return [min(own) for own in times]


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of log seconds against log size, by least squares on the three largest sizes."""
    return float(np.polyfit(np.log(sizes[-3:]), np.log(seconds[-3:]), 1)[0])


def _variational_step(
    kernel: AbstractKernel | AbstractMultiOutputKernel, inducing: AbstractInducing, data: Dataset
) -> Step:
    model = DeepGP(GPLayer(kernel, data.num_outputs, inducing=inducing), GaussianNoise(0.05))
    target = Variational().target(model, data)
    return lambda: _elbo(target, data)


def _on_a_line(inducing: str, num_inducing: int) -> AbstractInducing:
    if inducing == "points":
        return Points(jnp.linspace(-1.0, 1.0, num_inducing)[:, None])
    return Fourier(-2.0, 2.0, num_inducing // 2)


def _data(num_rows: int, num_outputs: int) -> Dataset:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(num_rows, 1))
    y = np.sin(8 * x + np.arange(num_outputs)) + 0.1 * rng.normal(size=(num_rows, num_outputs))
    return Dataset(jnp.asarray(x), jnp.asarray(y))
