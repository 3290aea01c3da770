"""What values a target may take, and the check of a user's targets against it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError


class Support(NamedTuple):
    """A set of numbers in words, what to do when a target lies outside, a member, and the test of membership."""

    wanted: str
    advice: str
    member: float
    contains: Callable[[np.ndarray], np.ndarray]


REAL = Support("finite real numbers", "Remove or repair the rows.", 0.0, np.isfinite)
POSITIVE = Support(
    "positive numbers", "Drop zeros, or model them with a likelihood for real numbers.", 1.0, lambda y: y > 0
)
UNIT_INTERVAL = Support(
    "numbers strictly between 0 and 1",
    "Divide by their largest possible value; pull exact zeros and ones inwards, or use a Bernoulli likelihood.",
    0.5,
    lambda y: (y > 0) & (y < 1),
)
COUNTS = Support(
    "counts 0, 1, 2, …",
    "Round them, or use a likelihood for real or positive numbers; targets must not be standardised.",
    0.0,
    lambda y: (y >= 0) & (y == np.round(y)),
)


def labels(num_classes: int) -> Support:
    """The labels 0 … C−1."""
    return Support(
        f"labels 0, …, {num_classes - 1}",
        "Number the classes from 0 (np.unique(y, return_inverse=True)) and check the number of classes.",
        0.0,
        lambda y: (y >= 0) & (y < num_classes) & (y == np.round(y)),
    )


def check_support(y: ArrayLike, support: Support, owner: str) -> None:
    """Raise `InputError` unless y is numeric, has shape [..., N, P], and every value that isn't missing is a member."""
    array = np.asarray(y)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{owner} wants {support.wanted} as targets; got values of dtype {array.dtype}. "
            "Convert text and objects to numbers first; write a missing value as NaN."
        )
    if array.ndim < 2:
        raise InputError(
            f"Targets must have shape [N, P], one column per output; got shape {array.shape}. "
            "For a single output pass y[:, None]."
        )
    array = array.astype(float)
    known = array[~np.isnan(array)]
    wrong = known[~(np.isfinite(known) & support.contains(known))]
    if wrong.size:
        raise InputError(
            f"{owner} wants {support.wanted} as targets; got {wrong.size} other value(s), such as {wrong[0]:g}. "
            f"{support.advice} Missing values are NaN."
        )
