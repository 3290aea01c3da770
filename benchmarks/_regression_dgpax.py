"""dgpax in the regression benchmark: `python -m benchmarks._regression_dgpax problem.npz answer.json`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import jax
import numpy as np

import dgpax
from dgpax.inference import LBFGS
from dgpax.objectives import collapsed_bound, log_evidence


def build(model: str, data: dgpax.Dataset, num_inducing: int, seed: int) -> dgpax.DeepGP:
    """The model of that name at its default starting values."""
    if model == "exact":
        return dgpax.gp_regression(data)
    points = "k-means" if model == "learnt" else model
    return dgpax.sparse_gp_regression(data, num_inducing, points=points, train_points=model == "learnt", seed=seed)


def fit(model: dgpax.DeepGP, data: dgpax.Dataset, max_steps: int | None) -> dgpax.Fit:
    """`max_steps` None is the default of dgpax; 0 leaves the parameters as they are."""
    inference = "exact" if model.layers[0].inducing is None else "sparse"
    engine = None if max_steps is None else LBFGS(max_steps=max_steps)
    return jax.block_until_ready(dgpax.fit(model, data, inference, engine=engine, progress=False))


def describe(fitted: dgpax.Fit, data: dgpax.Dataset, x_test) -> dict:
    """The prediction in the units of y, and the objective reached in standardised units."""
    prediction = dgpax.predict(fitted, x_test)
    objective = log_evidence if fitted.model.layers[0].inducing is None else collapsed_bound
    return {
        "mean": np.asarray(prediction.mean).tolist(),
        "variance": np.asarray(prediction.variance).tolist(),
        "objective": float(objective(fitted.model, fitted.model.to_model_units(data)).total),
        "steps": fitted.report.steps,
        "converged": fitted.report.converged,
    }


def main(problem: Path, answer: Path) -> None:
    given = np.load(problem)
    data = dgpax.dataset(given["x"], given["y"])
    model = build(str(given["model"]), data, int(given["num_inducing"]), int(given["seed"]))
    max_steps = int(given["max_steps"]) if "max_steps" in given else None
    seconds, fitted = [], None
    for _ in ("cold", "warm"):
        started = time.perf_counter()
        fitted = fit(model, data, max_steps)
        seconds.append(time.perf_counter() - started)
    assert fitted is not None
    result = describe(fitted, data, given["x_test"]) | {"seconds_cold": seconds[0], "seconds_warm": seconds[1]}
    answer.write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
