"""What every layer is given, for tests that look inside a forward pass."""

from __future__ import annotations

from dgpax.propagate import Draws, walk


def layer_inputs(layers, posterior, x, carry, noise):
    """The inputs of every GP layer, and the carry there; inner layers are drawn by the noise."""
    draws, seen = Draws(posterior, noise), []

    def visit(index, random, inputs, carry):
        seen.append((inputs, carry))
        return (inputs, carry) if index == len(layers) - 1 else draws(index, random, inputs, carry)

    walk(layers, x, visit, carry)
    return seen
