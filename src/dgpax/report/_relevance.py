"""Which inputs matter, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..data import Dataset, Encoding
from ..errors import DgpaxError
from ..fits import AbstractFit
from ..kernels import AbstractKernel, AbstractStationary, Product, Sum
from ..layers import gp_layers
from ..likelihoods import GaussianNoise
from ..prediction import sample_jointly
from ._html import Node, Tag, name, section, table, tag
from ._inputs import Input, inputs_of
from ._text import number

NUM_DRAWS = 30
MOST_EVALUATIONS = 400
"""A joint draw costs the cube of it."""
FEWEST_ROWS = 4
MOST_INPUTS = 40
EFFECT = (
    "Effect: how much the function changes, in {units}, when this input alone moves by one standard deviation (root "
    "mean square over rows without gaps); for categories, its standard deviation over them. Bar: the mean over draws "
    "from the posterior; line: where 90% of the draws lie. Inputs that go together can stand in for each other."
)
LENGTHSCALE = (
    "1/length scale is that of the first layer's kernel for standardised inputs (the classical ARD relevance), with "
    "its range over categories, and over the layer's outputs where these have kernels of their own."
)
ONLY_LENGTHSCALES = (
    "Functions of this model can't be drawn (too many inputs, latent ones, or a covariance close to singular): see "
    "1/length scale."
)


class Relevance(NamedTuple):
    """Of every input: its effect on the function with a 90% range, and the inverse length scales of the first layer,
    an array each (None where the kernel has none per input)."""

    effect: np.ndarray | None
    low: np.ndarray | None
    high: np.ndarray | None
    inverse_lengthscales: tuple[np.ndarray, ...] | None

    def strength(self, num_inputs: int) -> np.ndarray:
        """What inputs are ordered by."""
        if self.effect is not None:
            return self.effect
        if self.inverse_lengthscales is None:
            return np.zeros(num_inputs)
        return np.array([values.mean() for values in self.inverse_lengthscales])


def relevance(
    fitted: AbstractFit, data: Dataset, inputs: Sequence[Input], gaps: Sequence[int] = (), seed: int = 0
) -> Relevance:
    """How much the function changes when one input does (`Input.effect`), in the units of y: mean and 90% range over
    draws of f from the posterior, at rows without gaps, which may have noise of their own in f.

    None where functions can't be drawn (latent variables, a covariance that is too close to singular) or there are too
    many inputs to do it soon.
    """
    all_inverse = _inverse_lengthscales(fitted, data.num_inputs)
    inverse = None if all_inverse is None else tuple(all_inverse[:, list(one.places)] for one in inputs)
    num_rows = min(MOST_EVALUATIONS // sum(max(2, len(one.places)) for one in inputs), data.num_rows)
    if num_rows < FEWEST_ROWS:
        return Relevance(None, None, None, inverse)
    x = np.asarray(data.x)
    whole = x[np.all(x[:, list(gaps)] <= 0, axis=1)]
    whole = whole if len(whole) else x
    rows = whole[np.linspace(0, len(whole) - 1, num_rows).astype(int)]
    moved = [one.moves(x, rows) for one in inputs]
    places = np.concatenate(moved).astype(x.dtype)
    try:
        draws = sample_jointly(fitted, places.reshape(-1, x.shape[1]), num_samples=NUM_DRAWS, seed=seed)
    except DgpaxError:
        return Relevance(None, None, None, inverse)
    values = np.asarray(draws).reshape(NUM_DRAWS, *places.shape[:2], -1)
    parts = np.split(values, np.cumsum([len(part) for part in moved])[:-1], axis=1)
    if not np.all(np.isfinite(values)):
        return Relevance(None, None, None, inverse)
    effects = np.array(
        [[one.effect(x, f) for one, f in zip(inputs, draw, strict=True)] for draw in zip(*parts, strict=True)]
    )
    low, high = np.quantile(effects, [0.05, 0.95], axis=0)
    return Relevance(effects.mean(axis=0), low, high, inverse)


def relevance_section(fitted: AbstractFit, data: Dataset, encoding: Encoding | None = None, seed: int = 0) -> Tag:
    """A bar with its range per input, most influential first."""
    inputs = inputs_of(data, encoding)
    gaps = () if encoding is None else encoding.gaps
    found = relevance(fitted, data, inputs, gaps, seed)
    order = np.argsort(-found.strength(len(inputs)), kind="stable")[:MOST_INPUTS]
    rows = [_row(inputs[i].name, found, i) for i in order.tolist()]
    left_out = len(inputs) - len(order)
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
    inverse = "" if found.inverse_lengthscales is None else _span(found.inverse_lengthscales[index])
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


def _inverse_lengthscales(fitted: AbstractFit, num_inputs: int) -> np.ndarray | None:
    first = next(iter(gp_layers(fitted.model.layers).values()), None)
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
