"""Posteriors coupled across layers against the mean field: `python -m benchmarks.star --part cost`.

Parts: `cost` (time of a step), `growth` (in layers, inducing points and width), `bounds` (on concrete, after
convergence), `convergence` (natural gradients against Adam).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

import dgpax
from dgpax.data import InMemory
from dgpax.inference import AbstractEngine, Gradient, NaturalGradient, Settling, Variational
from dgpax.objectives import elbo

from ._record import RESULTS, Record, command_line, write
from ._steps_dgpax import Clock
from ._tables import Column, Table

TITLE = "Posteriors coupled across layers"
INTRODUCTION = """\
The model of STAR's appendix (`dgpax.star`): layers of width 5, 5 and 1, 128 inducing points each, 5 samples. A step is
one of Adam on the ELBO with all its parameters, in the loop of `fit`; times are medians over runs of 10 steps, without
the first. The mean field is `dgpax.posteriors.MeanField`, whose products skip the zero half of triangular factors and
which computes the first layer once for all samples, as the coupled families do. Bounds are averages over 1,000 samples
after training by natural gradients, on standardised targets. Settling means that rates fall to zero in the last 40% of
the steps, and that a collapse of the bound is undone; without it natural gradients don't come to rest on minibatches
(512 of 7,373 rows of kin8nm, of 10,741 of naval)."""
FAMILIES = ("mean-field", "stripes-and-arrow", "fully-coupled")
HIGHEST = {
    "mean-field": {"layers": 1, "inducing": 2, "width": 1},
    "stripes-and-arrow": {"layers": 3, "inducing": 3, "width": 3},
    "fully-coupled": {"layers": 3, "inducing": 3, "width": 3},
}
"""Powers in O(NM²τL), O(NM²τL² + Nτ³L³ + M³τL³) and O(NM²τ²L² + Nτ³L³ + M³τ³L³) [STAR, section 3.2]."""
_PAPER = "Lindinger et al. 2020"
TABLES = (
    Table(
        title="Time of a step, 512 rows",
        kind="cost",
        names=("posterior", "engine", "device"),
        columns=(
            Column("milliseconds", "median, ms", ".2f"),
            Column("ratio", "over the mean field", ".2f"),
            Column("blocks", "blocks of R", ".0f"),
        ),
    ),
    Table(
        title="Growth of a step",
        kind="growth",
        names=("posterior", "what", "size"),
        columns=(Column("milliseconds", "median, ms", ".2f"),),
    ),
    Table(
        title="Exponents of growth: the slope of log time, and the paper's highest power",
        kind="exponent",
        names=("posterior", "what"),
        columns=(Column("exponent", "exponent", ".2f"), Column("highest", "paper", ".0f")),
    ),
    Table(
        title="Bounds on concrete (M = 128, widths 5-5-1, all rows)",
        kind="bound",
        names=("dataset", "posterior", "by"),
        columns=(Column("bound", "ELBO", ".1f"), Column("steps", "steps", ".0f")),
        published=(
            {"dataset": "concrete", "posterior": "mean-field", "by": _PAPER, "bound": "-414"},
            {"dataset": "concrete", "posterior": "fully-coupled", "by": _PAPER, "bound": "-359"},
        ),
    ),
    Table(
        title="Stripes and arrow: natural gradients against Adam (0.005)",
        kind="convergence",
        names=("dataset", "by"),
        columns=(
            Column("bound", "ELBO, last 100 steps", ".1f"),
            Column("steps", "steps", ".0f"),
            Column("rejected_steps", "rejected", ".0f"),
        ),
    ),
)


def step_time(model: dgpax.DeepGP, data: dgpax.Dataset, posterior: str, engine: str, *, runs: int, steps: int) -> float:
    """Median milliseconds of a step."""
    clock = Clock()
    dgpax.fit(
        model,
        data,
        Variational(posterior, 5),
        engine=make_engine(engine, runs * steps, steps),
        stopping=clock,
        progress=False,
    )
    return float(1e3 * np.median(np.diff(clock.readings)) / steps)


def make_engine(name: str, max_steps: int, steps_per_call: int) -> AbstractEngine:
    """The paper's Adam, or natural gradients as they come, or with rates that fall to zero in the last 40% of steps."""
    if name == "natural":
        return NaturalGradient(max_steps=max_steps, steps_per_call=steps_per_call)
    if name == "natural, settling":
        return Settling(
            engine=NaturalGradient(), patience=max_steps, settle_steps=2 * max_steps // 5,
            max_steps=max_steps, steps_per_call=steps_per_call,
        )  # fmt: skip
    rate = optax.adam(0.005)
    return Gradient(optimiser=rate, max_steps=max_steps, steps_per_call=steps_per_call)


def _random(num_rows: int, num_columns: int = 5) -> dgpax.Dataset:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_rows, num_columns))
    return dgpax.dataset(x, np.sin(x.sum(axis=1, keepdims=True)) + 0.1 * rng.normal(size=(num_rows, 1)))


def cost(quick: bool) -> Iterator[Record]:
    data = _random(60 if quick else 512)
    model = dgpax.star(data, 3, 10 if quick else 128)
    for engine in ("adam", "natural"):
        base = None
        for posterior in FAMILIES:
            milliseconds = step_time(model, data, posterior, engine, runs=4 if quick else 8, steps=2 if quick else 10)
            base = milliseconds if base is None else base
            print(f"{posterior}, {engine}: {milliseconds:.2f} ms, {milliseconds / base:.2f}", flush=True)
            labels: Record = {"kind": "cost", "posterior": posterior, "engine": engine, "device": jax.default_backend()}
            blocks = dict(zip(FAMILIES, (11, 26, 66), strict=True))[posterior]
            yield labels | {"milliseconds": milliseconds, "ratio": milliseconds / base, "blocks": blocks}


def growth(quick: bool) -> Iterator[Record]:
    sizes = {"layers": (2, 3, 4), "inducing": (32, 64, 128), "width": (2, 4, 8)}
    usual = {"layers": 3, "inducing": 64, "width": 5}
    if quick:
        sizes, usual = {"layers": (2, 3)}, {"layers": 2, "inducing": 10, "width": 2}
    data = _random(60 if quick else 512)
    for posterior in FAMILIES:
        for what, values in sizes.items():
            times = []
            for size in values:
                chosen = usual | {what: size}
                model = dgpax.star(data, chosen["layers"], chosen["inducing"], width=chosen["width"])
                milliseconds = step_time(model, data, posterior, "adam", runs=4, steps=2 if quick else 10)
                print(f"{posterior}, {what} {size}: {milliseconds:.2f} ms", flush=True)
                labels: Record = {"kind": "growth", "posterior": posterior, "what": what, "size": size}
                yield labels | {"milliseconds": milliseconds}
                times.append(milliseconds)
            exponent = float(np.polyfit(np.log(values), np.log(times), 1)[0])
            labels = {"kind": "exponent", "posterior": posterior, "what": what}
            yield labels | {"exponent": exponent, "highest": HIGHEST[posterior][what]}


def bounds(quick: bool) -> Iterator[Record]:
    """Natural gradients, 5 seeds at once."""
    seeds, steps = (2, 4) if quick else (5, 2_000)
    named = dgpax.load("concrete")
    data = dgpax.dataset(named.x, named.y)
    model = dgpax.star(data, 3, 10 if quick else 128)
    for posterior in FAMILIES:
        engine = NaturalGradient(max_steps=steps, steps_per_call=min(steps, 250))
        started = time.perf_counter()
        method, copies = Variational(posterior, 5), [data] * seeds
        fits = dgpax.fit_many([model] * seeds, copies, method, engine=engine, seeds=range(seeds), progress=False)
        values = [_bound(fitted, data, 10 if quick else 1_000) for fitted in fits]
        print(f"{posterior}: {np.mean(values):.1f} {values} in {time.perf_counter() - started:.0f} s", flush=True)
        for seed, (fitted, bound) in enumerate(zip(fits, values, strict=True)):
            yield (
                {"kind": "bound", "dataset": "concrete", "posterior": posterior, "by": "dgpax, natural gradients"}
                | {"bound": bound, "steps": steps, "seed": seed, "rejected_steps": fitted.report.rejected_steps}
            )


def _bound(fitted: dgpax.Fit, data: dgpax.Dataset, num_samples: int) -> float:
    """The ELBO, averaged over samples, in runs of ten."""
    scaled = fitted.model.to_model_units(data)
    run = jax.jit(lambda key: elbo(fitted.model, fitted.posterior, scaled, key=key, num_samples=10).total)
    return float(jnp.mean(jnp.stack([run(jr.key(index)) for index in range(num_samples // 10)])))


def convergence(quick: bool, datasets: Sequence[str] = ()) -> Iterator[Record]:
    """Stripes and arrow by natural gradients (2,000 steps) and by Adam (10,000), 5 seeds; naval 10 seeds, no Adam."""
    steps = {"natural, settling": 5, "adam": 6} if quick else {"natural, settling": 2_000, "adam": 10_000}
    for dataset in datasets or (["concrete"] if quick else ["boston", "concrete", "energy", "kin8nm", "naval"]):
        seeds = 2 if quick else 10 if dataset == "naval" else 5
        data, _ = dgpax.load(dataset).split(0)
        model = dgpax.star(data, 3, 10 if quick else 128)
        for name, number in steps.items():
            if dataset == "naval" and name == "adam":
                continue
            engine = make_engine(name, number, min(500, number))
            fits = dgpax.fit_many(
                [model] * seeds,
                [InMemory(data, 512)] * seeds,
                Variational("stripes-and-arrow", 5),
                engine=engine,
                seeds=range(seeds),
                progress=False,
            )
            values = [float(np.mean(fitted.report.history[-100:])) for fitted in fits]
            print(dataset, name, values, flush=True)
            for seed, (fitted, bound) in enumerate(zip(fits, values, strict=True)):
                yield (
                    {"kind": "convergence", "dataset": dataset, "by": name, "seed": seed, "steps": number}
                    | {"bound": bound, "rejected_steps": fitted.report.rejected_steps}
                )


PARTS: dict[str, Callable[[argparse.Namespace], Iterator[Record]]] = {
    "cost": lambda a: cost(a.quick),
    "growth": lambda a: growth(a.quick),
    "bounds": lambda a: bounds(a.quick),
    "convergence": lambda a: convergence(a.quick, a.datasets),
}


def main(arguments: Sequence[str]) -> Path:
    """Run the parts; each has a file of its own, which grows with every record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.star", description=__doc__)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=["cost"])
    parser.add_argument("--datasets", nargs="+", default=[], help="of convergence; all five unless named")
    parser.add_argument("--name", help="of the result file, in place of the part's")
    parser.add_argument("--quick", action="store_true", help="tiny, to try it out")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen, path = parser.parse_args(arguments), RESULTS
    for part in chosen.part:
        started, records = time.perf_counter(), []
        for record in PARTS[part](chosen):
            records.append(record)
            path = write(
                "star",
                records,
                command=command_line("benchmarks.star", arguments),
                precision="float64",
                seeds=[0],
                seconds=time.perf_counter() - started,
                peers={},
                folder=chosen.results,
                part=f"{chosen.name or part}-{jax.default_backend()}",
            )
    return path


if __name__ == "__main__":
    main(sys.argv[1:])
