"""Models whose parts disagree on shapes, refused in words instead of a matrix product's."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..covariances import IndependentProcesses, Kuu, refuse_uncovered
from ..data import Dataset
from ..errors import DgpaxError, InputError
from ..layers import GPLayer, gp_layers, last_gp
from ..model import DeepGP
from ..objectives import AbstractObjective
from ..parameters import find
from ..posteriors import AbstractPosterior, AbstractWhitenedJoint, GaussianBlock, MeanField, process_widths
from ..typing import PyTree


def largest_kuu(model: DeepGP) -> int:
    """The largest number of inducing variables of a layer."""
    return max((layer.own_inducing().num_inducing for layer in gp_layers(model.layers).values()), default=0)


def check_model(model: DeepGP, data: Dataset) -> Dataset:
    """The data in the model's units, or an error that says what doesn't fit.

    It has no names, so that data of the same shape share compiled programs.
    """
    if isinstance(model, Dataset):
        raise InputError("fit(model, data) takes the model first; got a Dataset there. Exchange the two.")
    if not isinstance(model, DeepGP):
        raise InputError(
            f"This way of inference works on a DeepGP; got {type(model).__name__}. An architecture of dgpax.stride is "
            'for inference="stride".'
        )
    if not isinstance(data, Dataset):
        raise InputError(f"fit(model, data) needs a Dataset; got {type(data).__name__}. Make one: dataset(x, y).")
    if data.num_rows == 0:
        raise InputError("Found a dataset with 0 sample(s) while a minimum of 1 is required.")
    wanted = model.likelihood.num_latents(data.num_outputs)
    last = last_gp(model.layers)
    if last.num_outputs != wanted:
        raise InputError(
            f"The data has {data.num_outputs} output(s), for which the likelihood needs {wanted} latent function(s), "
            f"but the last layer has {last.num_outputs}. Set GPLayer(num_outputs={wanted})."
        )
    if model.scaling is not None and model.scaling.x_mean.shape[0] != data.num_inputs:
        raise InputError(
            f"The model was made for {model.scaling.x_mean.shape[0]} input columns; the data has {data.num_inputs}."
        )
    model.likelihood.check_targets(np.asarray(data.y))
    scaled = model.to_model_units(dataclasses.replace(data, input_names=(), output_names=()))
    refuse_mismatch(model, scaled)
    return scaled


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
def explaining_shapes(method: AbstractObjective, target: PyTree, data: PyTree) -> Iterator[None]:
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
        one_row = jax.ShapeDtypeStruct((1, 1, data.num_inputs), data.x.dtype)
        found = jax.eval_shape(layer.independent_kernel().diag, one_row).shape[0]
    if found not in (1, wanted):
        mixed = isinstance(processes, IndependentProcesses) and processes.mixing is not None
        raise InputError(
            f"Layer {index} has {wanted} {'latent processes' if mixed else 'output(s)'}, but its kernel or inducing "
            f"variables are for {found}. Give their parameters a leading axis of {wanted}, or none to share them."
        )


def _explain(method: AbstractObjective, target: PyTree, data: PyTree) -> None:
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
