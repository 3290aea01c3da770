"""Which inducing outputs of a deep model depend on which: block patterns by one word."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..errors import InputError, UnknownNameError
from ..linalg import BlockPattern


def block_pattern(structure: str | BlockPattern | np.ndarray, widths: Sequence[int]) -> BlockPattern:
    """The pattern over all processes, layer by layer: from a word, or from a boolean matrix of your own.

    `widths` are the numbers of processes of the layers. The words: "mean-field", "layer-wise" (all of a layer),
    "stripes-and-arrow" (the same output of every inner layer, and the last layer with all) [STAR, section 3.2],
    "fully-coupled".
    """
    if isinstance(structure, str):
        if structure not in PATTERNS:
            raise UnknownNameError(f"structure={structure!r} isn't known. There are: {', '.join(PATTERNS)}.")
        layer = np.repeat(np.arange(len(widths)), widths)
        output = np.concatenate([np.arange(width) for width in widths])
        return BlockPattern.from_mask(np.tril(PATTERNS[structure](layer, output)))
    pattern = structure if isinstance(structure, BlockPattern) else BlockPattern.from_mask(structure)
    if pattern.size != sum(widths):
        raise InputError(
            f"The block pattern is for {pattern.size} processes; the layers have {' + '.join(map(str, widths))} = "
            f"{sum(widths)}. Give a boolean matrix with a row for every one."
        )
    return pattern


def _mean_field(layer: np.ndarray, output: np.ndarray) -> np.ndarray:
    return np.eye(len(layer), dtype=bool)


def _layer_wise(layer: np.ndarray, output: np.ndarray) -> np.ndarray:
    return layer[:, None] == layer


def _stripes_and_arrow(layer: np.ndarray, output: np.ndarray) -> np.ndarray:
    last = layer == layer.max()
    stripes = (output[:, None] == output) & ~last[:, None] & ~last
    arrow = last[:, None] & ~last
    return np.eye(len(layer), dtype=bool) | stripes | arrow


def _fully_coupled(layer: np.ndarray, output: np.ndarray) -> np.ndarray:
    return np.ones((len(layer), len(layer)), bool)


PATTERNS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "mean-field": _mean_field,
    "layer-wise": _layer_wise,
    "stripes-and-arrow": _stripes_and_arrow,
    "fully-coupled": _fully_coupled,
}
