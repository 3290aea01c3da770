"""Fits that nobody trained, and what every layer is given, for tests that look inside."""

from __future__ import annotations

from dgpax import DeepGP, Fit
from dgpax.inference import FitReport
from dgpax.posteriors import AbstractPosterior
from dgpax.propagate import Draws, walk


def fit_of(
    model: DeepGP,
    posterior: AbstractPosterior,
    report: FitReport,
    num_inputs: int,
    input_names: tuple[str, ...] = (),
) -> Fit:
    """A fit with this posterior."""
    return Fit(model=model, posterior=posterior, report=report, num_inputs=num_inputs, input_names=input_names)


def layer_inputs(layers, posterior, x, carry, noise):
    """The inputs of every GP layer, and the carry there; inner layers are drawn by the noise."""
    draws, seen = Draws(posterior, noise), []

    def visit(index, random, inputs, carry):
        seen.append((inputs, carry))
        return (inputs, carry) if index == len(layers) - 1 else draws(index, random, inputs, carry)

    walk(layers, x, visit, carry)
    return seen
