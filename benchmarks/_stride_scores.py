"""What is recorded of a STRIDE fit, and of the one-layer GP that it started from."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import jax
import numpy as np

import dgpax
from dgpax import metrics
from dgpax.fits import AbstractFit
from dgpax.likelihoods import GaussianNoise
from dgpax.stride import Initial, StrideFit, initial_gp

from ._record import Record


class Timed(NamedTuple):
    """A one-layer GP, which several fits share, and the seconds that it took."""

    initial: Initial
    seconds: float

    @classmethod
    def of(cls, data: dgpax.Dataset, num_inducing: int | None, **settings: Any) -> Timed:
        """Trained here; settings as in `initial_gp`."""
        started = time.perf_counter()
        initial = initial_gp(data, num_inducing, **settings)
        return cls(initial, time.perf_counter() - started)


def deep_scores(fitted: StrideFit, x: np.ndarray, y: np.ndarray) -> Record:
    """Of the mixture. Seconds include compilation, and leave out the one-layer GP, which was given."""
    report, details = fitted.report, fitted.report.details
    return _scored(fitted, x, y) | {
        "seconds": report.seconds,
        "acceptance": float(details["acceptance_rate"][-1]),
        "r_hat": details["r_hat"],
        "hidden_error": details.get("hidden_error"),
    }


def shallow_scores(timed: Timed, x: np.ndarray, y: np.ndarray) -> Record:
    """Of the one-layer GP."""
    none = {"acceptance": None, "r_hat": None, "hidden_error": None}
    return _scored(timed.initial.fitted, x, y) | {"seconds": timed.seconds} | none


def _scored(fitted: AbstractFit, x: np.ndarray, y: np.ndarray) -> Record:
    def predict():
        return dgpax.predict(fitted, x)

    jax.block_until_ready(predict().mean)
    started = time.perf_counter()
    prediction = predict()
    jax.block_until_ready(prediction.mean)
    seconds = time.perf_counter() - started
    return {
        "smse": float(metrics.smse(y, prediction)),
        "nlpd": float(metrics.nlpd(y, prediction)),
        "mnll": float(metrics.mnll_stride(y, prediction.mean, _noise_variance(fitted.model))),
        "seconds_predict": seconds,
    }


def _noise_variance(model: dgpax.DeepGP):
    """In raw units."""
    assert isinstance(model.likelihood, GaussianNoise) and model.scaling is not None
    return model.likelihood.noise_variance.value * model.scaling.y_scale**2


def say(record: Record) -> None:
    """A record, on one line."""
    print({key: round(value, 5) if isinstance(value, float) else value for key, value in record.items()}, flush=True)
