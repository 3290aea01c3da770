"""Function values of chosen outputs of a multi-output process."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax.core import Tracer

from ..errors import InputError
from ..parameters import AbstractParameter, as_real
from ..typing import Array, Int
from ._base import AbstractInducing


class OutputPoints(AbstractInducing):
    """u = f_p(z_m) for all P outputs at M locations: P·M variables, all correlated [FRAMEWORK, eq. 48].

    General, and the dearest: P³M³. Points in the latent processes of an LMC cost Q·M³.
    """

    locations: AbstractParameter = eqx.field(converter=as_real)
    num_outputs: int = eqx.field(static=True)

    def __check_init__(self):
        if len(self.locations.shape) != 2:
            raise InputError(f"OutputPoints(locations=...) needs shape (M, D); got {self.locations.shape}.")

    @property
    def num_inducing(self) -> int:
        return self.num_outputs * self.locations.shape[0]

    def check_outputs(self, num_outputs: int) -> None:
        """An error if the layer has another number of outputs."""
        if self.num_outputs != num_outputs:
            raise InputError(
                f"OutputPoints(num_outputs={self.num_outputs}) are in a layer of {num_outputs} outputs. "
                f"Set num_outputs={num_outputs}."
            )


class OutputPairs(AbstractInducing):
    """u_m = f_{outputs[m]}(z_m): any pairs of a location and an output [FRAMEWORK, eq. 47]."""

    locations: AbstractParameter = eqx.field(converter=as_real)
    outputs: Int[Array, " M"] = eqx.field(converter=jnp.asarray)

    def __check_init__(self):
        if len(self.locations.shape) != 2 or self.outputs.shape != self.locations.shape[:1]:
            raise InputError(
                "OutputPairs needs locations of shape (M, D) and one output number per location; got "
                f"{self.locations.shape} and {self.outputs.shape}."
            )

    @property
    def num_inducing(self) -> int:
        return self.locations.shape[0]

    def check_outputs(self, num_outputs: int) -> None:
        """An error if some output isn't one of the layer's."""
        if isinstance(self.outputs, Tracer) or bool(jnp.all((self.outputs >= 0) & (self.outputs < num_outputs))):
            return
        raise InputError(
            f"OutputPairs(outputs=...) must be from 0 to {num_outputs - 1} in a layer of {num_outputs} outputs; got "
            f"{int(jnp.min(self.outputs))} to {int(jnp.max(self.outputs))}."
        )
