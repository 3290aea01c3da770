"""Where deep fits begin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..fits import AbstractFit
from ..model import DeepGP
from ..parameters import find, set_values

NOISES = (0.1, 0.01, 0.001)
"""Variances at which the noise is held first, in those of the targets: a small one makes the layers explain them."""
LEAST_NOISE = 1e-5
NOISE = "likelihood.noise_variance"


def starts(model: DeepGP, one_layer: AbstractFit) -> list[DeepGP]:
    """The model with little noise or more, and with the kernel and the noise of a fit with one layer in its last."""
    return [*(set_values(model, {NOISE: noise}) for noise in NOISES), _warm(model, one_layer)]


def _warm(model: DeepGP, one_layer: AbstractFit) -> DeepGP:
    known, last = one_layer.model, f"layers[{len(model.layers) - 1}].kernel"
    parameters = {name: p for name, p in find(known).items() if name.startswith("layers[0].kernel")}
    values: dict[str, Any] = {NOISE: np.maximum(np.asarray(find(known)[NOISE].value), LEAST_NOISE)}
    own = find(model, last)
    for name, parameter in parameters.items():
        there = name.replace("layers[0].kernel", last)
        if there in own and own[there].shape == parameter.shape:
            values[there] = parameter.value
    return set_values(model, values)
