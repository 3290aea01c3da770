"""The one walk through the layers of a model, which everything that asks them something is a visitor of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from ..layers import Given, GPLayer, Layers
from ..typing import Array, Float

State = TypeVar("State")
Visit = Callable[[int, Any, Float[Array, "*b N D"], State], tuple[Float[Array, "..."], State]]


def walk(layers: Layers, x: Float[Array, "*b N D"], visit: Visit[State], state: State) -> tuple[Given, State]:
    """What every layer makes of what it is given, from the first to the last.

    `visit(index, random, inputs, state)` has the values of a layer's random part at these inputs, and what the visits
    behind it need to know.
    """
    given = Given(x)
    for index, layer in enumerate(layers):

        def draw(inputs, index=index, layer=layer):
            nonlocal state
            assert layer.random is not None  # noqa: S101 - only layers with a random part draw
            values, state = visit(index, layer.random, inputs, state)
            return values

        given = given.then(layer.apply(given, draw))
    return given, state


def input_widths(layers: Layers, x: Float[Array, "N D"]) -> dict[int, int]:
    """How many inputs the random part of every layer has."""
    widths = {}

    def visit(index, random, inputs, state):
        widths[index] = inputs.shape[-1]
        width = random.num_outputs if isinstance(random, GPLayer) else random.num_latents
        return jnp.zeros((*inputs.shape[:-1], width)), state

    jax.eval_shape(lambda x: walk(layers, x, visit, None)[0].last, x)
    return widths
