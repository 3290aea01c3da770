"""How the arrays of a catalogue file become inputs, outputs and the rows of the standard test sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

Arrays = Mapping[str, np.ndarray]


class Contents(NamedTuple):
    """All rows, and the row numbers of every standard test set, [splits, rows]; the rest is for training."""

    x: np.ndarray
    y: np.ndarray
    test: np.ndarray


def plain(arrays: Arrays) -> Contents:
    """X and y, without a standard split."""
    return Contents(arrays["X"], arrays["y"], np.empty((0, 0), int))


def with_splits(arrays: Arrays) -> Contents:
    """X and y, with the test rows of several splits."""
    return Contents(arrays["X"], arrays["y"], arrays["test"].astype(int))


def with_test_set(arrays: Arrays) -> Contents:
    """X, y for training and X_test, y_test."""
    return _joined(arrays["X"], arrays["y"], arrays["X_test"], arrays["y_test"])


def images(arrays: Arrays) -> Contents:
    """X_train, y_train, X_test, y_test."""
    return _joined(arrays["X_train"], arrays["y_train"], arrays["X_test"], arrays["y_test"])


def binary_images(arrays: Arrays) -> Contents:
    """As `images`, with eight pixels packed in a byte."""
    train, test = (np.unpackbits(arrays[f"X_{part}_bits"], axis=1) for part in ("train", "test"))
    return _joined(train, arrays["y_train"], test, arrays["y_test"])


def electrocardiogram(arrays: Arrays) -> Contents:
    """Time in seconds and voltage in mV from the converter's readings, 200 a millivolt around 1024."""
    reading = arrays["adc"].astype(float)
    time = np.arange(len(reading)) / float(arrays["fs"])
    return Contents(time[:, None], (reading - 1024.0) / 200.0, np.empty((0, 0), int))


def _joined(x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray) -> Contents:
    test = np.arange(len(x), len(x) + len(x_test))[None, :]
    return Contents(np.concatenate([x, x_test]), np.concatenate([y, y_test]), test)
