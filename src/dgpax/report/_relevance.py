"""Which inputs matter, and how sure that is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data import Dataset
from ..errors import DgpaxError
from ..inference import Fit
from ..kernels import AbstractKernel, AbstractStationary, Product, Sum
from ..layers import GPLayer
from ..likelihoods import GaussianNoise
from ..prediction import sample_jointly
from ._html import Node, Tag, name, section, table, tag
from ._text import number

NUM_DRAWS = 30
MOST_EVALUATIONS = 400
"""A joint draw costs the cube of it."""
FEWEST_ROWS = 4
MOST_INPUTS = 40
EFFECT = (
    "Effect: how much the function changes, in {units}, when this input alone moves by one standard deviation (root "
    "mean square over rows). Bar: its mean over draws from the posterior; line: where 90% of the draws lie. Inputs "
    "that go together can stand in for each other."
)
LENGTHSCALE = (
    "1/length scale is that of the first layer's kernel for standardised inputs (the classical ARD relevance), with "
    "its range over the layer's outputs where these have kernels of their own."
)
ONLY_LENGTHSCALES = "This model has too many inputs, or latent ones, to draw functions of it: see 1/length scale."


class Relevance(NamedTuple):
    """Of every input: the effect of one standard deviation of it on the function, with a 90% range, and the inverse
    length scales [Q, D] of the first layer (None where the kernel has none per input)."""

    effect: np.ndarray | None
    low: np.ndarray | None
    high: np.ndarray | None
    inverse_lengthscales: np.ndarray | None

    def strength(self, num_inputs: int) -> np.ndarray:
        """What inputs are ordered by."""
        if self.effect is not None:
            return self.effect
        return np.zeros(num_inputs) if self.inverse_lengthscales is None else self.inverse_lengthscales.mean(axis=0)


def relevance(fitted: Fit, data: Dataset, seed: int = 0) -> Relevance:
    """The root mean square over rows of f(x + ½ s_d) − f(x − ½ s_d), where s_d is a standard deviation along input d,
    in the units of y: mean and 90% range over draws of f from the posterior.

    None where functions can't be drawn (latent variables) or there are too many inputs to do it soon.
    """
    inverse = _inverse_lengthscales(fitted, data.num_inputs)
    num_rows = min(MOST_EVALUATIONS // (2 * data.num_inputs), data.num_rows)
    if num_rows < FEWEST_ROWS:
        return Relevance(None, None, None, inverse)
    x = np.asarray(data.x)
    middle = x[np.linspace(0, len(x) - 1, num_rows).astype(int)]
    steps = 0.5 * np.diag(np.std(x, axis=0))[:, None, :]
    places = np.stack([middle - steps, middle + steps]).astype(x.dtype)
    try:
        draws = sample_jointly(fitted, places.reshape(-1, x.shape[1]), num_samples=NUM_DRAWS, seed=seed)
    except DgpaxError:
        return Relevance(None, None, None, inverse)
    below, above = np.moveaxis(np.asarray(draws).reshape(NUM_DRAWS, *places.shape[:3], -1), 1, 0)
    effects = np.sqrt(np.mean((above - below) ** 2, axis=(2, 3)))
    low, high = np.quantile(effects, [0.05, 0.95], axis=0)
    return Relevance(effects.mean(axis=0), low, high, inverse)


def relevance_section(fitted: Fit, data: Dataset, seed: int = 0) -> Tag:
    """A bar with its range per input, most influential first."""
    found = relevance(fitted, data, seed)
    names = data.input_names or tuple(f"x{i}" for i in range(data.num_inputs))
    order = np.argsort(-found.strength(len(names)), kind="stable")[:MOST_INPUTS]
    rows = [_row(names[i], found, i) for i in order.tolist()]
    left_out = len(names) - len(order)
    units = "the units of the target" if isinstance(fitted.model.likelihood, GaussianNoise) else "latent units"
    return section(
        "relevance",
        "Which inputs matter",
        tag("p", ONLY_LENGTHSCALES if found.effect is None else EFFECT.format(units=units)),
        table(("input", "effect", "", "90% of draws", "1/length scale"), rows, wide=(3, 4)),
        tag("p", LENGTHSCALE, class_="muted wide"),
        tag("p", f"… and {left_out:,} more inputs with less effect.", class_="muted") if left_out > 0 else None,
    )


def _row(label: str, found: Relevance, index: int) -> list[Node]:
    inverse = "" if found.inverse_lengthscales is None else _span(found.inverse_lengthscales[:, index])
    if found.effect is None or found.low is None or found.high is None:
        return [name(label), "", "", "", inverse]
    largest = float(np.max(found.high)) or 1.0
    mean, low, high = (float(values[index]) for values in (found.effect, found.low, found.high))
    bar = _bar(*(value / largest for value in (mean, low, high)))
    return [name(label), bar, number(mean), f"{number(low)} … {number(high)}", inverse]


def _bar(mean: float, low: float, high: float) -> Tag:
    """A bar with the line of its range, 100 units wide and stretched to the cell."""
    return tag(
        "svg",
        tag("rect", x=0.0, y=0.0, width=100.0, height=8.0, class_="trough"),
        tag("rect", x=0.0, y=0.0, width=100.0 * mean, height=8.0, class_="bar"),
        tag("rect", x=100.0 * low, y=3.0, width=max(100.0 * (high - low), 0.5), height=2.0, class_="range"),
        viewBox="0 0 100 8", preserveAspectRatio="none", class_="bar-of-share", role="img", aria_label="effect",
    )  # fmt: skip


def _span(values: np.ndarray) -> str:
    low, high = float(values.min()), float(values.max())
    return number(low) if np.isclose(low, high) else f"{number(low)} … {number(high)}"


def _inverse_lengthscales(fitted: Fit, num_inputs: int) -> np.ndarray | None:
    first = next((layer for layer in fitted.model.layers if isinstance(layer, GPLayer)), None)
    if first is None or not isinstance(first.kernel, AbstractKernel):
        return None
    found = [1.0 / np.asarray(kernel.lengthscale.value) for kernel in _stationary(first.kernel)]
    found = [values.reshape(-1, num_inputs) for values in found if values.shape[-1:] == (num_inputs,)]
    return np.concatenate(found) if found else None


def _stationary(kernel: AbstractKernel) -> list[AbstractStationary]:
    if isinstance(kernel, AbstractStationary):
        return [kernel]
    if isinstance(kernel, Sum | Product):
        return [part for term in kernel.kernels for part in _stationary(term)]
    return []
