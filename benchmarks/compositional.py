"""Table 1 and Figures 5, 6, D1 and E1-E6 of CU: `python -m benchmarks.compositional`; `--quick` tries it out.

A few minutes per posterior on one core; its trials are trained in one program.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.random as jr
import numpy as np
import optax

from dgpax import DeepGP, Fit, GPLayer, dataset, fit_many, plot
from dgpax.data import Dataset
from dgpax.inducing import Points
from dgpax.inference import LBFGS, Gradient, Variational
from dgpax.kernels import RBF, Periodic
from dgpax.likelihoods import GaussianNoise
from dgpax.means import Identity
from dgpax.objectives import elbo
from dgpax.parameters import fixed
from dgpax.posteriors import AbstractPosterior, Chain, Coupled, PointsAsLocations
from dgpax.prediction import LayerDraws, compositional_report, layer_draws

from . import _compositional_warps as warps
from ._record import RESULTS, Record, command_line, write
from ._tables import Column, Table

TITLE = "Compositional uncertainty"
INTRODUCTION = """\
y = sin(7 exp(x)) + 0.01 noise at 50 points on [-1, 1]; two layers, a squared-exponential kernel with an identity mean
below a periodic kernel, 10 inducing points, noise fixed at its true value. Every posterior takes 30,000 steps of Adam,
as in the paper; the rate rises to 0.003 over a tenth of them and falls to 0 by a cosine (the paper's is 0.001). All
layers start nearly deterministic, with roots of 0.01, whitened: from the prior, half of the trials end in a local
optimum at about -850. Adam leaves 6 to 16 nats: two rounds of 3,000 steps of L-BFGS follow, each with draws of its own
that stay the same in all of its steps. Points as locations begin where the fully coupled fit of the same trial is after
its steps of Adam, with its moments, and take two such rounds with 200 draws, with a nugget of 1e-6 and then 1e-7: their
bound rises as the nugget falls, and so does the number of steps that they need. The trials differ in the seeds of their
samples and in where their inducing points start (by 0.01). Bounds are averages over 1,000 samples that training hasn't
seen, variances of layers as functions at 0 over 1,000 draws. Jointly Gaussian inducing points (fully coupled, chain)
are integrated out, unless it says that they are drawn, as in the paper. "From a wrong start" is a first run of points
as locations by L-BFGS, by mistake from the moments of a model with other inducing points: half of it stays in local
optima."""
TABLE = "sin(7 exp(x))"
PUBLISHED = (
    {"dataset": TABLE, "posterior": "DSVI, in the paper (± sd)", "bound": "13.43 ± 8.03", "variance_1": "1.99e-06",
     "variance_2": "1.11e-04"},
    {"dataset": TABLE, "posterior": "jointly Gaussian, in the paper (± sd)", "variance_1": "4.23e-05"},
    {"dataset": TABLE, "posterior": "points as locations, in the paper (± sd)", "bound": "36.31 ± 3.55",
     "variance_1": "2.22e-03", "variance_2": "4.98e-02"},
)  # fmt: skip
TABLES = (
    Table(
        title="Table 1",
        kind="table",
        names=("dataset", "posterior"),
        columns=(
            Column("bound", "ELBO", ".2f"),
            Column("variance_1", "Var f1(0)", ".2e"),
            Column("variance_2", "Var f2(0)", ".2e"),
            Column("seconds", "seconds, all trials", ".0f"),
        ),
        published=PUBLISHED,
    ),
    Table(
        title="Three layers (Figures E1-E6)",
        kind="three layers",
        names=("dataset", "posterior"),
        columns=(
            Column("bound", "ELBO", ".2f"),
            Column("share_1", "Var f1 / prior's", ".1e"),
            Column("share_2", "Var f2 / prior's", ".1e"),
            Column("share_3", "Var f3 / prior's", ".1e"),
        ),
    ),
    *warps.TABLES,
)
POSTERIORS = {
    "mean-field": lambda model: _method(_narrow(Coupled.at_prior(model.layers, "mean-field"))),
    "fully-coupled": lambda model: _method(_narrow(Coupled.at_prior(model.layers, "fully-coupled"))),
    "fully-coupled, drawn": lambda model: _method(
        _narrow(Coupled.at_prior(model.layers, "fully-coupled")), MANY_SAMPLES, "sampled-elbo"
    ),
    "chain": lambda model: _method(_narrow(Chain.at_prior(model.layers))),
}
COUPLED, LOCATIONS = "fully-coupled", "points-as-locations"
FAMILIES = (*POSTERIORS, LOCATIONS)
SHOWN = ("mean-field", COUPLED, LOCATIONS)
FIGURES = {"sine": lambda x: np.sin(3 * x), "identity": lambda x: x}
COLORS = ("#2f6db3", "#d9772b", "#3d8f5f")
NUM_INDUCING = 10
FEW_SAMPLES, MANY_SAMPLES = 10, 30
FIXED_SAMPLES, MANY_FIXED_SAMPLES = 100, 200
"""Draws of a round of L-BFGS where inducing outputs are integrated out, and where they are drawn."""
NUGGETS = (1e-6, 1e-7)
"""Of points as locations, one for each round."""
NUM_MATCHED = 4000
"""Draws whose moments points as locations start with."""


def main(argv: list[str] | None = None) -> Path:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["table"])
    parser.add_argument("--posteriors", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--seeds", nargs="+", type=int, help="of alignment and heartbeat; as many as trials, at most 3")
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, choices=(0, 1, 2), default=2, help="of L-BFGS")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--pictures", type=Path, help="the folder for the figures; none are drawn without it")
    parser.add_argument("--name", help="of the result file, in place of the part's")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    if arguments.quick:
        arguments.trials, arguments.steps, arguments.rounds = 2, 20, 1
    arguments.seeds = arguments.seeds or list(range(min(arguments.trials, 3)))
    started, records, path = time.perf_counter(), [], None
    for part in arguments.parts:
        records += PARTS[part](arguments)
        path = write(
            "compositional",
            records,
            part=arguments.name or (None if len(arguments.parts) > 1 else part),
            command=command_line("benchmarks.compositional", sys.argv[1:] if argv is None else argv),
            precision="float64",
            seeds=arguments.seeds if part in warps.PARTS else list(range(arguments.trials)),
            seconds=time.perf_counter() - started,
            peers={},
            folder=arguments.results,
        )
    assert path is not None
    return path


def table(arguments: argparse.Namespace) -> list[Record]:
    """Table 1, a record per trial and posterior, and Figure 5."""
    x = np.linspace(-1, 1, 50)[:, None]
    data = dataset(x, np.sin(7 * np.exp(x)) + 0.01 * np.random.RandomState(1).randn(50, 1))
    records, drawn, done = [], {}, {}
    for name in arguments.posteriors:
        models = [_two_layers(trial) for trial in range(arguments.trials)]
        fits, seconds = _train(name, models, data, arguments, done)
        for trial, fitted in enumerate(fits):
            bound, error = _bound(fitted, data)
            at = layer_draws(fitted, x, num_draws=1000, at=(np.zeros((1, 1)), np.zeros((1, 1)))).variances
            numbers = {"bound": bound, "bound_error": error, "seconds": seconds}
            numbers |= {f"variance_{index}": float(v[0, 0]) for index, v in enumerate(at, 1)}
            records.append({"kind": "table", "dataset": TABLE, "posterior": name, "trial": trial} | numbers)
            print(records[-1], flush=True)
        grid = (np.linspace(-1.5, 1.5, 121)[:, None], np.linspace(-2.5, 2.5, 121)[:, None])
        drawn[name] = [layer_draws(fits[0], x, at=grid)]
    if arguments.pictures:
        _draw(arguments.pictures / "compositional.png", drawn, data)
    return records


def three_layers(arguments: argparse.Namespace) -> list[Record]:
    """Figures E1-E6: three starts each, and what is left of the layers' prior variance."""
    x, records = np.linspace(-1, 1, 50)[:, None], []
    for shape, function in FIGURES.items():
        data, drawn, done = dataset(x, function(x) + 0.01 * np.random.RandomState(1).randn(50, 1)), {}, {}
        for name in arguments.posteriors:
            models = [_three_layers(trial) for trial in range(min(arguments.trials, 3))]
            fits, _ = _train(name, models, data, arguments, done)
            drawn[name] = [layer_draws(fitted, x, num_draws=10, seed=trial) for trial, fitted in enumerate(fits)]
            for trial, fitted in enumerate(fits):
                report = compositional_report(fitted, x)
                shares = {f"share_{index}": layer.share for index, layer in enumerate(report.layers, 1)}
                record = {"kind": "three layers", "dataset": shape, "posterior": name, "trial": trial}
                records.append(record | {"bound": _bound(fitted, data)[0]} | shares)
                print(records[-1], flush=True)
        if arguments.pictures:
            _draw(arguments.pictures / f"compositional-{shape}.png", drawn, data)
    return records


def _method(posterior: AbstractPosterior, num_samples: int = FEW_SAMPLES, objective: Any = "elbo") -> Variational:
    return Variational(posterior, num_samples=num_samples, chunk_rows=50, objective=objective)


def _narrow(posterior: Any, scale: float = 0.01) -> AbstractPosterior:
    root = posterior.outputs.root
    narrow = root.with_value(np.broadcast_to(scale * np.eye(NUM_INDUCING), root.shape))
    return eqx.tree_at(lambda p: p.outputs.root, posterior, narrow)


def _two_layers(trial: int) -> DeepGP:
    first, last = (Points(_scattered(trial, layer)) for layer in range(2))
    layers = [GPLayer(RBF(), 1, Identity(), first), GPLayer(Periodic(np.pi), 1, inducing=last)]
    return DeepGP(layers, GaussianNoise(fixed(1e-4)))


def _three_layers(trial: int) -> DeepGP:
    points = [Points(_scattered(trial, layer)) for layer in range(3)]
    layers = [GPLayer(RBF(), 1, Identity(), z) for z in points[:2]]
    return DeepGP([*layers, GPLayer(RBF(), 1, inducing=points[2])], GaussianNoise(fixed(1e-4)))


def _scattered(trial: int, layer: int) -> np.ndarray:
    rng = np.random.default_rng([trial, layer])
    return np.linspace(-1, 1, NUM_INDUCING)[:, None] + 0.01 * rng.normal(size=(NUM_INDUCING, 1))


def _train(
    name: str, models: list[DeepGP], data: Dataset, arguments: argparse.Namespace, done: dict[str, list[Fit]]
) -> tuple[list[Fit], float]:
    """The fits of all trials and their seconds; `done` remembers what Adam reached, for those that go on from there."""
    steps, started = arguments.steps, time.perf_counter()
    if name == LOCATIONS:
        fits = done.get(COUPLED) or _by_adam(models, POSTERIORS[COUPLED](models[0]), data, steps)
        for seed, nugget in enumerate(NUGGETS[: arguments.rounds]):
            fits = [_as_locations(*pair, nugget) for pair in zip(fits, models, strict=True)]
            fits = _polish(fits, MANY_FIXED_SAMPLES, "elbo", data, steps // 10, seed)
            models = [fitted.model for fitted in fits]
    else:
        method = POSTERIORS[name](models[0])
        num_samples = MANY_FIXED_SAMPLES if method.objective == "sampled-elbo" else FIXED_SAMPLES
        fits = done[name] = _by_adam(models, method, data, steps)
        for seed in range(arguments.rounds):
            fits = _polish(fits, num_samples, method.objective, data, steps // 10, seed)
    return fits, time.perf_counter() - started


def _by_adam(models: list[DeepGP], method: Variational, data: Dataset, steps: int) -> list[Fit]:
    rate = optax.warmup_cosine_decay_schedule(0.0, 3e-3, steps // 10, steps)
    return fit_many(
        models,
        [data] * len(models),
        method,
        engine=Gradient(optimiser=optax.adam(rate), max_steps=steps, steps_per_call=min(500, steps)),
        seeds=range(len(models)),
        progress=False,
    )


def _polish(fits: list[Fit], num_samples: int, objective: Any, data: Dataset, steps: int, seed: int) -> list[Fit]:
    """A round of L-BFGS, whose draws stay the same from its first step to its last."""
    return fit_many(
        [fitted.model for fitted in fits],
        [data] * len(fits),
        [_method(fitted.posterior, num_samples, objective) for fitted in fits],
        engine=LBFGS(max_steps=steps, memory=100, tolerance=1e-9, steps_per_call=min(100, steps)),
        seeds=[100 * (1 + seed) + trial for trial in range(len(fits))],
        progress=False,
    )


def _as_locations(fitted: Fit, start: DeepGP, nugget: float) -> Fit:
    """Points as locations with the moments of a fit at the first layer's inducing points of another model."""
    model = eqx.tree_at(lambda m: m.layers[0].inducing, fitted.model, start.layers[0].inducing)
    draws = layer_draws(fitted, model.layers[0].inducing.locations.value, num_draws=NUM_MATCHED).outputs
    return replace(fitted, model=model, posterior=PointsAsLocations.matching(model.layers, draws, nugget))


def _bound(fitted: Fit, data: Dataset, batches: int = 10, num_samples: int = 100) -> tuple[float, float]:
    """The average over 1,000 samples, and its standard error."""
    found = np.array([_estimate(fitted, data, key, num_samples) for key in jr.split(jr.key(7), batches)])
    return float(found.mean()), float(found.std(ddof=1) / np.sqrt(batches))


@eqx.filter_jit
def _estimate(fitted: Fit, data: Dataset, key, num_samples: int):
    return elbo(fitted.model, fitted.posterior, data, key=key, num_samples=num_samples).total


def _draw(path: Path, drawn: dict[str, list[LayerDraws]], data: Dataset) -> None:
    """A row of panels per posterior, a colour per start."""
    import matplotlib.pyplot as plt

    columns = 1 + len(next(iter(drawn.values()))[0].at)
    figure, rows = plt.subplots(
        len(drawn), columns, figsize=(2.9 * columns, 2.2 * len(drawn)), layout="constrained", squeeze=False
    )
    for axes, (name, several) in zip(rows, drawn.items(), strict=True):
        for color, draws in zip(COLORS, several, strict=False):
            plot.layers(draws, data, color=color, axes=axes)
        axes[0].set_ylabel(name.replace(", ", ",\n"))
    for ax in rows[1:].flat:
        ax.set_title("")
    for ax in rows[:-1].flat:
        ax.set_xlabel("")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


PARTS: dict[str, Callable[[argparse.Namespace], list[Record]]] = {
    "table": table,
    "three-layers": three_layers,
    **warps.PARTS,
}

if __name__ == "__main__":
    main()
