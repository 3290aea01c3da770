"""What can stand in a model's list of layers."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp

from ..errors import InputError
from ..typing import Array, Float

if TYPE_CHECKING:
    from ._gp import GPLayer
    from ._inputs import LatentVariables

Draw = Callable[[Float[Array, "*b N D"]], Float[Array, "*c N P"]]


class Given(eqx.Module):
    """What a layer is given: the model's inputs x, and what all layers before it made, in their order."""

    x: Float[Array, "*b N D"]
    outputs: tuple[Float[Array, "..."], ...] = ()

    @property
    def last(self) -> Float[Array, "..."]:
        """What the layer before made; the inputs, if there is none."""
        return self.outputs[-1] if self.outputs else self.x

    def of(self, source: str | int) -> Float[Array, "..."]:
        """The model's "inputs", or what the layer of this number made."""
        if source == "inputs":
            return self.x
        if not isinstance(source, int) or not 0 <= source < len(self.outputs):
            raise InputError(
                f'Append(source={source!r}) is layer {len(self.outputs)} of its model. Name "inputs" or the number of '
                "a layer before it."
            )
        return self.outputs[source]

    def then(self, values: Float[Array, "..."]) -> Given:
        """With what one more layer made."""
        return Given(self.x, (*self.outputs, values))


class AbstractLayer(eqx.Module):
    """A step from inputs to outputs, row by row. It holds a prior, never a posterior.

    Most layers outside this package are a function of what they are given, and `apply` is all they say. One that has a
    GP inside names it in `random`; `draw(inputs)` then are that GP's values at whatever inputs the layer likes.
    """

    @abc.abstractmethod
    def apply(self, given: Given, draw: Draw) -> Float[Array, "..."]:
        """What the layer makes of what it is given, [..., N, P]."""

    @property
    def random(self) -> GPLayer | LatentVariables | None:
        """What of the layer a posterior is about; None for a function."""
        return None


def beside(left: Float[Array, "*b N D"], right: Float[Array, "*c N E"]) -> Float[Array, "*d N F"]:
    """The columns of both, for every sample."""
    samples = jnp.broadcast_shapes(left.shape[:-1], right.shape[:-1])
    return jnp.concatenate([jnp.broadcast_to(part, (*samples, part.shape[-1])) for part in (left, right)], axis=-1)
