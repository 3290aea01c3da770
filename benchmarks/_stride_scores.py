"""What is recorded of a STRIDE fit, and of the one-layer GP that it started from."""

from __future__ import annotations

import time

import jax
import numpy as np

import dgpax
from dgpax import metrics
from dgpax.stride import Schedule, StrideFit

from ._record import Record

NOTHING = Schedule(num_iterations=0)


def deep_scores(fitted: StrideFit, x: np.ndarray, y: np.ndarray) -> Record:
    """Of the mixture. Seconds include compilation, and leave out the one-layer GP."""
    scores = _scored(lambda: fitted.predict(x), fitted, y)
    report = fitted.report
    return scores | {
        "seconds": report.seconds,
        "acceptance": float(report.acceptance_rate[-1]) if len(report.acceptance_rate) else None,
        "r_hat": report.r_hat,
        "hidden_error": report.hidden_error,
    }


def shallow_scores(fitted: StrideFit, x: np.ndarray, y: np.ndarray) -> Record:
    """Of the one-layer GP."""
    scores = _scored(lambda: dgpax.predict(fitted.initial.fitted, x), fitted, y)
    return scores | {"seconds": fitted.report.seconds_initial, "acceptance": None, "r_hat": None, "hidden_error": None}


def _scored(predict, fitted: StrideFit, y: np.ndarray) -> Record:
    jax.block_until_ready(predict().mean)
    started = time.perf_counter()
    prediction = predict()
    jax.block_until_ready(prediction.mean)
    seconds = time.perf_counter() - started
    return {
        "smse": float(metrics.smse(y, prediction)),
        "nlpd": float(metrics.nlpd(y, prediction)),
        "mnll": float(metrics.mnll_stride(y, prediction.mean, fitted.noise_variance)),
        "seconds_predict": seconds,
    }


def say(record: Record) -> None:
    """A record, on one line."""
    print({key: round(value, 5) if isinstance(value, float) else value for key, value in record.items()}, flush=True)
