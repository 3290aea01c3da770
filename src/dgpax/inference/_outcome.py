"""What a method makes of what it has trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..conditional import unclipped_residual
from ..data import Dataset
from ..fits import AbstractFit, Fit, FitReport
from ..layers import AbstractLayer, GPLayer
from ..model import DeepGP
from ..posteriors import AbstractCarry, AbstractPosterior
from ..programs import compiled
from ..typing import Array, Float, PyTree

REPORT_ROWS = 2000


class Outcome(NamedTuple):
    """The fitted model, how its report makes a fit of it, and what the report has to say."""

    model: DeepGP
    make: Callable[[FitReport], AbstractFit]
    largest_jitter: float
    clipped_variances: int
    details: dict[str, Any]
    notes: tuple[str, ...]


def gp_outcome(method: Any, target: PyTree, model: DeepGP, data: Dataset, scaled: Dataset) -> Outcome:
    """A `Fit`, of the model and the posterior in which a method ends."""
    trained, posterior, jitter, clipped = _finish(method.finish, target, scaled)
    fitted = _values_of(trained, model)

    def make(report: FitReport) -> Fit:
        return Fit(
            model=fitted, posterior=posterior, report=report, num_inputs=data.num_inputs, input_names=data.input_names
        )

    return Outcome(trained, make, float(jitter), int(clipped), {}, ())


def _values_of(trained: PyTree, like: PyTree) -> PyTree:
    """The values of one target in the structure (what is trainable) of the other."""
    return jax.tree.unflatten(jax.tree.structure(like), jax.tree.leaves(trained))


@compiled
def _finish(finish: Callable, target: PyTree, data: Dataset):
    """The fitted model, its posterior, the largest jitter, and how many variances had to be clipped."""
    model, posterior = finish(target, data)
    carry = posterior.begin(model.layers)
    return model, posterior, carry.jitter(), _num_clipped(model.layers[0], posterior, carry, data.x[:REPORT_ROWS])


def _num_clipped(layer: AbstractLayer, posterior: AbstractPosterior, carry: AbstractCarry, x: Float[Array, "N D"]):
    """How many variances of the first layer rounding leaves below zero."""
    if not isinstance(layer, GPLayer):
        return jnp.zeros((), int)
    processes = layer.processes()
    rows = processes.rows(x)[:REPORT_ROWS]
    residual = unclipped_residual(processes.kernel, rows, posterior.inducing(0, layer, carry), carry.root(0))
    return jnp.sum(residual < 0)
