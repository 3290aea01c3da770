"""Whether several fits of one model found the same inner layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..fits import AbstractFit
from ._composition import layer_draws

SAME = 0.95


class RestartComparison(NamedTuple):
    """What one fit made of an inner layer, against the first fit.

    `order` says which output of this fit is the first one's first, second, …; `signs` whether it is mirrored;
    `agreement` is the smallest correlation of these pairs over the rows.
    """

    fit: int
    layer: int
    order: tuple[int, ...]
    signs: tuple[int, ...]
    agreement: float

    @property
    def same_up_to_symmetry(self) -> bool:
        """Whether mirroring and reordering outputs makes the layer the first fit's."""
        return self.agreement > SAME

    def __str__(self) -> str:
        if not self.same_up_to_symmetry:
            found = f"is another function (correlation {self.agreement:.2f} at best)"
        else:
            flipped = sum(sign < 0 for sign in self.signs)
            changes = [f"{flipped} of {len(self.signs)} output(s) mirrored"] if flipped else []
            changes += ["outputs in another order"] if self.order != tuple(range(len(self.order))) else []
            found = "is the same" + (f" with {' and '.join(changes)}" if changes else "")
        return f"fit {self.fit}, layer {self.layer} {found}."


def compare_restarts(
    fits: Sequence[AbstractFit], x, *, num_draws: int = 50, seed: int = 0
) -> tuple[RestartComparison, ...]:
    """Every fit but the first against the first one, inner layer by inner layer, by the averages of their outputs.

    Modes that differ by signs or by the order of a layer's outputs are the same composition seen in a mirror: one
    Gaussian can't hold them both, and different runs end in different ones [CU, Figure 2].
    """
    if len(fits) < 2:
        raise InputError(f"compare_restarts(fits, x) needs at least two fits of a model; got {len(fits)}.")
    means = [
        [np.asarray(out).mean(axis=0) for out in layer_draws(fit, x, num_draws=num_draws, seed=seed).outputs[:-1]]
        for fit in fits
    ]
    if not means[0]:
        raise InputError("compare_restarts() looks at inner layers; these models have one layer.")
    shapes = [[mean.shape for mean in own] for own in means]
    if any(own != shapes[0] for own in shapes):
        raise InputError(f"compare_restarts() needs fits with equal layers; got layers of shapes {shapes}.")
    return tuple(
        _compare(number, layer, first, other)
        for number, own in enumerate(means[1:], 1)
        for layer, (first, other) in enumerate(zip(means[0], own, strict=True))
    )


def _compare(number: int, layer: int, first: np.ndarray, other: np.ndarray) -> RestartComparison:
    """The signed permutation of the outputs with the largest sum of correlations."""
    from scipy.optimize import linear_sum_assignment

    ours, theirs = (_standardised(values) for values in (first, other))
    correlation = ours.T @ theirs
    _, order = linear_sum_assignment(-np.abs(correlation))
    chosen = correlation[np.arange(len(order)), order]
    signs = tuple(int(sign) for sign in np.where(chosen < 0, -1, 1))
    return RestartComparison(number, layer, tuple(map(int, order)), signs, float(np.min(np.abs(chosen))))


def _standardised(values: np.ndarray) -> np.ndarray:
    centred = values - values.mean(axis=0)
    return centred / np.maximum(np.linalg.norm(centred, axis=0), 1e-300)
