"""Two studies of coupled posteriors: `python -m benchmarks.star_studies --part estimators calibration`.

`estimators`: inducing outputs integrated out against drawn, from the same start. `calibration`: Figure 2 of STAR.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from scipy.spatial import KDTree

import dgpax
from dgpax.inference import Variational
from dgpax.objectives import elbo, sampled_elbo

from ._record import RESULTS, Record, command_line, write
from ._tables import Column, Table
from .star import make_engine
from .star_tables import extrapolation, settling

TITLE = "Studies of coupled posteriors"
INTRODUCTION = """\
Estimators: the fully coupled posterior on concrete (128 points, widths 5-5-1, all rows, Adam 0.005, 5 samples),
trained on the bound with inducing outputs integrated out (Theorem 1) or drawn; both are judged by the former, with
1,000 samples. The noise is the standard deviation of the two estimates of the bound, where the first fit ends.
Calibration: kin8nm, extrapolation splits, three layers and the sparse GP, natural gradients as in the tables (in the
file of commit 4bc737a: other directions, and a constant rate of 0.1); medians over the test rows of all splits in ten
bins by the distance to the nearest training row, and means in ten bins by predicted variance. A ratio above 1 means
that the variance is too small."""
TABLES = (
    Table(
        title="Integrated out or drawn (concrete)",
        kind="estimator",
        names=("estimator", "step"),
        columns=(Column("bound", "ELBO", ".1f"),),
    ),
    Table(
        title="Noise of the two estimators",
        kind="noise",
        names=("estimator",),
        columns=(Column("deviation", "standard deviation, 5 samples", ".2f"),),
    ),
    Table(
        title="Predicted standard deviation by distance to the training data (kin8nm)",
        kind="distance",
        names=("model", "bin"),
        columns=(Column("distance", "median distance", ".3f"), Column("deviation", "median sd", ".4f")),
    ),
    Table(
        title="Squared error by predicted variance (kin8nm)",
        kind="variance",
        names=("model", "bin"),
        columns=(
            Column("variance", "mean predicted variance", ".5f"),
            Column("error", "mean squared error", ".5f"),
            Column("ratio", "ratio", ".2f"),
        ),
    ),
)
MODELS = {"SGP": ("mean-field", 1), "mean-field": ("mean-field", 3), "stripes-and-arrow": ("stripes-and-arrow", 3)}
BINS = 10


def estimators(quick: bool, splits: int, steps: int) -> list[Record]:
    """The bound on the way, for both; there are no splits."""
    steps, looks = (4, 2) if quick else (steps, 10)
    named = dgpax.load("concrete")
    data = dgpax.dataset(named.x, named.y)
    model = dgpax.star(data, 3, 10 if quick else 128)
    scaled, records, fits = model.to_model_units(data), [], {}
    for estimator, objective in (("marginal", "elbo"), ("sampled", "sampled-elbo")):
        method, found = Variational("fully-coupled", 5, objective=objective), {}

        def look(progress, found=found):
            if progress.step % (steps // looks) == 0:
                found[progress.step] = _estimate(elbo, progress.target(), scaled, 20 if quick else 1_000).mean()

        engine = make_engine("adam", steps, steps // looks)
        fits[estimator] = dgpax.fit(model, data, method, engine=engine, callbacks=[look], progress=False)
        records += [
            {"kind": "estimator", "estimator": estimator, "step": step, "bound": float(bound)}
            for step, bound in found.items()
        ]
        print(estimator, found, flush=True)
    state = fits["marginal"].model, fits["marginal"].posterior
    for estimator, objective in (("marginal", elbo), ("sampled", sampled_elbo)):
        deviation = float(_estimate(objective, state, scaled, 20 if quick else 1_000).std(ddof=1))
        records.append({"kind": "noise", "estimator": estimator, "deviation": deviation})
        print(records[-1], flush=True)
    return records


def _estimate(objective: Callable, target, data: dgpax.Dataset, num_samples: int) -> np.ndarray:
    """Estimates of a bound, each by five samples."""
    keys = jr.split(jr.key(1), num_samples // 5)
    return np.asarray(_estimates(objective, target, data, keys))


@eqx.filter_jit
def _estimates(objective: Callable, target, data: dgpax.Dataset, keys):
    model, posterior = target
    return jax.lax.map(lambda key: objective(model, posterior, data, key=key, num_samples=5).total, keys)


def calibration(quick: bool, splits: int, steps: int) -> list[Record]:
    """Figure 2, left and right."""
    splits, steps, num_inducing = (2, 4, 10) if quick else (splits, steps, 128)
    named, records = dgpax.load("concrete" if quick else "kin8nm"), []
    pairs = [extrapolation(named.x, named.y.reshape(len(named.x), -1), seed) for seed in range(splits)]
    trains = [train for train, _ in pairs]
    for name, (posterior, layers) in MODELS.items():
        models = [dgpax.star(train, layers, num_inducing) for train in trains]
        engine = settling("natural", trains[0].num_rows, steps)
        fits = dgpax.fit_many(models, trains, Variational(posterior, 5), engine=engine, progress=False)
        distance, variance, error = np.hstack([_of_rows(*both) for both in zip(fits, pairs, strict=True)])
        for index, rows in enumerate(np.array_split(np.argsort(distance), BINS)):
            medians = {"distance": np.median(distance[rows]), "deviation": np.sqrt(np.median(variance[rows]))}
            records.append(_record("distance", name, index, medians))
        for index, rows in enumerate(np.array_split(np.argsort(variance), BINS)):
            means = {"variance": variance[rows].mean(), "error": error[rows].mean()}
            records.append(_record("variance", name, index, means | {"ratio": means["error"] / means["variance"]}))
        print(name, [records[-BINS + index]["ratio"] for index in range(BINS)], flush=True)
    return records


def _of_rows(fitted: dgpax.Fit, pair: tuple[dgpax.Dataset, dgpax.Dataset]) -> np.ndarray:
    """Distance to the nearest training row in the model's units, predicted variance, squared error: [3, N]."""
    seen, new = (np.asarray(fitted.model.to_model_units(data).x) for data in pair)
    prediction = dgpax.predict(fitted, pair[1].x)
    error = jnp.square(pair[1].y - prediction.mean)
    return np.stack([KDTree(seen).query(new)[0], *(np.asarray(v)[:, 0] for v in (prediction.variance, error))])


def _record(kind: str, model: str, index: int, numbers: dict) -> Record:
    return {"kind": kind, "model": model, "bin": index} | {name: float(value) for name, value in numbers.items()}


PARTS: dict[str, Callable[[bool, int, int], list[Record]]] = {"estimators": estimators, "calibration": calibration}


def main(arguments: Sequence[str]) -> Path:
    """Run the parts, and record each of them in a file of its own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.star_studies", description=__doc__)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--splits", type=int, default=10, help="of calibration")
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--quick", action="store_true", help="tiny, to try it out")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen, path = parser.parse_args(arguments), RESULTS
    for part in chosen.part:
        started = time.perf_counter()
        path = write(
            "star_studies",
            PARTS[part](chosen.quick, chosen.splits, chosen.steps),
            command=command_line("benchmarks.star_studies", arguments),
            precision="float64",
            seeds=list(range(chosen.splits)),
            seconds=time.perf_counter() - started,
            peers={},
            folder=chosen.results,
            part=part,
        )
    return path


if __name__ == "__main__":
    main(sys.argv[1:])
