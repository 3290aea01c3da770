"""What is left of the uncertainty inside a deep model, in numbers and in words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..covariances import IndependentProcesses
from ..errors import InputError
from ..fits import AbstractFit, with_posterior
from ..layers import GPLayer, gp_layers
from ._composition import LayerDraws, layer_draws

MOST_ROWS = 100
COLLAPSED = 0.01
NARROW = 0.1
"""A layer whose standard deviation is less than this share of its prior's is called collapsed, or narrow."""


class LayerUncertainty(NamedTuple):
    """One GP layer, averaged over its inputs and outputs: the variance of its values at inputs that are the same in
    all draws, the prior's, and how much its outputs vary over the rows (which tells a constant layer)."""

    index: int
    variance: float
    prior_variance: float
    signal_variance: float

    @property
    def share(self) -> float:
        """The share of the prior's variance that is left."""
        return self.variance / self.prior_variance

    @property
    def collapsed(self) -> bool:
        """Whether the layer is nearly one function: less than 1% of the prior's standard deviation is left."""
        return self.share < COLLAPSED**2

    def __str__(self) -> str:
        left = f"{np.sqrt(self.share):.2%} of the prior's standard deviation is left"
        if self.collapsed:
            return f"layer {self.index} has collapsed to one function: {left}."
        return f"layer {self.index} is {'narrow' if self.share < NARROW**2 else 'uncertain'}: {left}."


class CompositionalReport(NamedTuple):
    """How much is left open in every layer, and in their composition at the rows (in raw units)."""

    posterior: str
    layers: tuple[LayerUncertainty, ...]
    composition_variance: float

    @property
    def collapsed(self) -> tuple[int, ...]:
        """The inner layers that have collapsed."""
        return tuple(layer.index for layer in self.layers[:-1] if layer.collapsed)

    @property
    def warning(self) -> str | None:
        """What a collapse means, or None if no inner layer has collapsed."""
        if not self.collapsed:
            return None
        names = ", ".join(map(str, self.collapsed))
        return (
            f"Inner layer(s) {names} collapsed under {self.posterior}: the model is a GP on inputs warped by a fixed "
            "function, and says nothing about other compositions that explain the data as well. Predictions may be "
            "fine; layers shouldn't be interpreted. Try Variational('points-as-locations') or 'fully-coupled'."
        )

    def __str__(self) -> str:
        lines = [f"Compositional uncertainty under {self.posterior}:", *(f"  {layer}" for layer in self.layers)]
        lines.append(f"  the composition has a standard deviation of {np.sqrt(self.composition_variance):.3g}.")
        return "\n".join([*lines, self.warning] if self.warning else lines)


def compositional_report(fitted: AbstractFit, x, *, num_draws: int = 200, seed: int = 0) -> CompositionalReport:
    """How much uncertainty is left inside a fitted model, for any posterior family [CU, section 5].

    Of the rows of x, which should span the data, at most 100 are used. Print the result to read it.
    """
    rows = np.asarray(x)
    if rows.ndim == 0 or len(rows) == 0:
        raise InputError("compositional_report(fitted, x) needs at least one row.")
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, MOST_ROWS).astype(int))]
    own = with_posterior(fitted, "compositional_report()")
    draws = layer_draws(own, rows, num_draws=num_draws, seed=seed)
    gp = gp_layers(own.model.layers).items()
    layers = tuple(
        LayerUncertainty(
            index,
            float(np.mean(variance)),
            _prior_variance(layer, draws, place),
            float(np.mean(np.var(np.mean(draws.functions[place], axis=0), axis=0))),
        )
        for place, ((index, layer), variance) in enumerate(zip(gp, draws.variances, strict=True))
    )
    spread = float(np.mean(np.var(np.asarray(draws.composition), axis=0)))
    return CompositionalReport(type(own.posterior).__name__, layers, spread)


def _prior_variance(layer: GPLayer, draws: LayerDraws, place: int) -> float:
    """On average over the outputs, at the inputs that all draws share."""
    at, processes = draws.at[place][None], layer.processes()
    variance = np.asarray(processes.kernel.diag(processes.rows(at)))
    if isinstance(processes, IndependentProcesses) and processes.mixing is not None:
        W = np.asarray(processes.mixing)
        variance = W**2 @ np.broadcast_to(variance, (W.shape[1], variance.shape[-1]))
    return float(np.mean(variance))
