"""One layer by itself."""

from __future__ import annotations

from ..covariances import IndependentProcesses, SharedProcesses
from ..errors import InputError
from ..layers import AbstractLayer, GPLayer
from ..posteriors import AbstractCarry, AbstractPosterior
from ..typing import Array, Float
from ._base import AbstractOutputs, At
from ._independent import IndependentOutputs
from ._patches import PatchOutputs
from ._shared import SharedOutputs


def layer_outputs(
    index: int, layer: AbstractLayer, posterior: AbstractPosterior, x: Float[Array, "*b N D"], carry: AbstractCarry
) -> AbstractOutputs:
    """q(f_l(x)), to be asked for in any shape."""
    gp = as_gp(layer)
    at, processes = At(index, gp, posterior, x, carry), gp.processes()
    if isinstance(processes, IndependentProcesses):
        return IndependentOutputs(at, processes)
    return SharedOutputs(at, processes) if isinstance(processes, SharedProcesses) else PatchOutputs(at, processes)


def as_gp(layer: AbstractLayer) -> GPLayer:
    """A layer that must be a GP, or an error that says so."""
    if not isinstance(layer, GPLayer):
        raise InputError(f"{type(layer).__name__} can't be the last layer: put a GPLayer behind it.")
    return layer
