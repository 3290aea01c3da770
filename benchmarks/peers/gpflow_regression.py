"""GPflow in the regression benchmark: `python gpflow_regression.py problem.npz answer.json`, in its own interpreter.

The data comes standardised, with the starting values of dgpax. The second, warm fit is GPflow's best case: same
model and optimiser, so that the compiled loss is reused.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from pathlib import Path

import gpflow
import numpy as np
import scipy
import tensorflow as tf

MAX_ITERATIONS = 15_000


def build(given):
    kernel = gpflow.kernels.SquaredExponential(variance=given["variance"], lengthscales=given["lengthscale"])
    data = (given["scaled_x"], given["scaled_y"])
    if "locations" not in given:
        return gpflow.models.GPR(data, kernel, noise_variance=given["noise_variance"])
    model = gpflow.models.SGPR(data, kernel, given["locations"], noise_variance=given["noise_variance"])
    gpflow.set_trainable(model.inducing_variable, bool(given["train_locations"]))
    return model


def timed_fit(model, optimiser, start, max_iterations):
    """From the starting values every time."""
    for variable, value in zip(model.trainable_variables, start, strict=True):
        variable.assign(value)
    started = time.perf_counter()
    result = optimiser.minimize(
        model.training_loss,
        model.trainable_variables,
        options={"maxiter": max_iterations, "maxfun": 10 * max_iterations},
    )
    return time.perf_counter() - started, result


def main(problem: Path, answer: Path) -> None:
    given = np.load(problem)
    if "jitter" in given:
        gpflow.config.set_default_jitter(float(given["jitter"]))
    model = build(given)
    result = {}
    max_iterations = int(given["max_steps"]) if "max_steps" in given else MAX_ITERATIONS
    if max_iterations > 0:
        optimiser = gpflow.optimizers.Scipy()
        start = [variable.numpy() for variable in model.trainable_variables]
        cold, _ = timed_fit(model, optimiser, start, max_iterations)
        warm, outcome = timed_fit(model, optimiser, start, max_iterations)
        result = {"seconds_cold": cold, "seconds_warm": warm}
        result |= {"steps": int(outcome.nit), "converged": bool(outcome.success)}
    mean, variance = model.predict_y(given["scaled_x_test"])
    result |= {
        "mean": (given["y_mean"] + given["y_scale"] * mean.numpy()).tolist(),
        "variance": (given["y_scale"] ** 2 * variance.numpy()).tolist(),
        "objective": float(model.maximum_log_likelihood_objective()),
        "versions": {
            "gpflow": gpflow.__version__,
            "tensorflow": tf.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
    }
    answer.write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
