"""Models whose parts disagree on shapes, refused in words instead of a matrix product's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from ..covariances import IndependentProcesses, Kuu, refuse_uncovered
from ..data import Dataset
from ..errors import DgpaxError, InputError
from ..layers import GPLayer, gp_layers
from ..model import DeepGP
from ..parameters import find
from ..posteriors import AbstractPosterior, AbstractWhitenedJoint, GaussianBlock, MeanField, process_widths
from ..typing import PyTree
from ._base import AbstractMethod, largest_kuu


def refuse_mismatch(model: DeepGP, data: Dataset) -> None:
    """An error that says what to do if kernels, inducing variables and data (in the model's units) don't agree."""
    own = gp_layers(model.layers)
    if 0 in own:
        refuse_uncovered(own[0].inducing, own[0].kernel, data.x)
    for index, layer in own.items():
        _check_processes(index, layer, data)


def refuse_blocks(posterior: AbstractPosterior, model: DeepGP) -> None:
    """An error if the posterior was made for other layers."""
    if isinstance(posterior, AbstractWhitenedJoint):
        _refuse_joint(posterior, model)
    if not isinstance(posterior, MeanField):
        return
    for index, layer in gp_layers(model.layers).items():
        block = posterior.blocks[index] if index < len(posterior.blocks) else None
        if isinstance(block, GaussianBlock):
            wanted = (layer.num_blocks, layer.own_inducing().num_inducing)
            if block.mean.shape != wanted:
                raise InputError(
                    f"Block {index} of the posterior has a mean of shape {block.mean.shape}, but layer {index} has "
                    f"{wanted[0]} process(es) with {wanted[1]} inducing outputs. Start from MeanField.at_prior(layers)."
                )


def _refuse_joint(posterior: AbstractWhitenedJoint, model: DeepGP) -> None:
    found = (posterior.widths, posterior.outputs.mean.shape[-1])
    wanted = (process_widths(model.layers), largest_kuu(model))
    if found != wanted:
        raise InputError(
            f"The posterior is for layers with {found[0]} processes and {found[1]} inducing outputs; the model has "
            f"{wanted[0]} and {wanted[1]}. Start from {type(posterior).__name__}.at_prior(layers)."
        )


@contextmanager
def explaining_shapes(method: AbstractMethod, target: PyTree, data: PyTree) -> Iterator[None]:
    """Turns an error about shapes inside the objective into one that lists the shapes of all parameters."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if not isinstance(error, DgpaxError):
            _explain(method, target, data)
        raise


def _check_processes(index: int, layer: GPLayer, data: Dataset) -> None:
    processes = layer.processes()
    wanted = processes.num_blocks(layer.num_outputs)
    if layer.inducing is not None:
        found = jax.eval_shape(lambda: Kuu(layer.own_inducing(), layer.kernel).diag()).shape[0]
    else:
        found = jax.eval_shape(layer.independent_kernel().diag, data.x[None, :1]).shape[0]
    if found not in (1, wanted):
        mixed = isinstance(processes, IndependentProcesses) and processes.mixing is not None
        raise InputError(
            f"Layer {index} has {wanted} {'latent processes' if mixed else 'output(s)'}, but its kernel or inducing "
            f"variables are for {found}. Give their parameters a leading axis of {wanted}, or none to share them."
        )


def _explain(method: AbstractMethod, target: PyTree, data: PyTree) -> None:
    try:
        slope = eqx.filter_grad(lambda target: method.terms(target, data, jr.key(0)).total)
        eqx.filter_eval_shape(slope, target)
    except (TypeError, ValueError) as error:
        if isinstance(error, DgpaxError):
            raise
        shapes = "\n".join(f"  {name} {jnp.shape(parameter.raw)}" for name, parameter in find(target).items())
        raise InputError(
            f"The parts of the model don't fit together: {str(error).strip().splitlines()[0]} These are the shapes of "
            f"its parameters:\n{shapes}\nA leading axis must have the length of the layer's outputs (or latent "
            "processes), the last one that of its input columns."
        ) from error
