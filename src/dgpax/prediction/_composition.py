"""Draws of every layer of a deep model as a function, and of their composition, that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..data import check_inputs
from ..errors import InputError
from ..inference import Fit
from ..layers import AppendInputs, GPLayer, LatentVariables
from ..model import DeepGP
from ..posteriors import AbstractPosterior
from ..propagate import beside
from ..typing import Array, Float, RandomKey
from ._layers import draw_rows


class LayerDraws(eqx.Module):
    """The same draws looked at in several places, in the model's units but for the composition. Per GP layer:

    `inputs` [S, N, D] are what the layer is given at the rows, `outputs` [S, N, P] what it makes of them;
    `at` [G, D] are inputs that are the same in all draws, `functions` [S, G, P] the layer's values there. The spread
    of `functions` over draws is what is not known about the layer. `composition` is f at the rows `x`, in raw units.
    """

    x: Float[Array, "N D"]
    inputs: tuple[Float[Array, "..."], ...]
    outputs: tuple[Float[Array, "..."], ...]
    at: tuple[Float[Array, "..."], ...]
    functions: tuple[Float[Array, "..."], ...]
    composition: Float[Array, "S N P"]

    @property
    def variances(self) -> tuple[Float[Array, "G P"], ...]:
        """Var f_l at the inputs that all draws share."""
        return tuple(jnp.var(values, axis=0) for values in self.functions)


def layer_draws(fitted: Fit, x, *, num_draws: int = 25, at: Sequence[Any] | None = None, seed: int = 0) -> LayerDraws:
    """Draws of all layers of a fitted model, of any posterior family, and of their composition at the rows of x.

    A draw is one function per layer, evaluated at all its inputs together: O(N³). `at` has the inputs at which every
    GP layer is looked at, in the model's units; None takes the average over draws of what it is given at the rows.
    Particles have one draw each. For the picture see `plot.layers`.
    """
    model = fitted.model
    if any(isinstance(layer, LatentVariables) for layer in model.layers):
        raise InputError("layer_draws() draws functions of x; latent variables make outputs differ from row to row.")
    if num_draws < 2:
        raise InputError(f"layer_draws(num_draws=...) must be at least 2 to show a spread; got {num_draws}.")
    rows = check_inputs(x, fitted.num_inputs, fitted.input_names)
    wanted = _checked(at, model, rows.shape[1], rows.dtype)
    return _draws(model, fitted.posterior, rows, wanted, jr.key(seed), num_draws)


@eqx.filter_jit
def _draws(
    model: DeepGP,
    posterior: AbstractPosterior,
    rows: Float[Array, "N D"],
    wanted: tuple[Float[Array, "..."] | None, ...],
    key: RandomKey,
    num_draws: int,
) -> LayerDraws:
    x = model.inputs_to_model_units(rows)
    key_outputs, key_rows = jr.split(key)
    posterior = posterior.layerwise(key_outputs, (num_draws,))
    carry, f, looks = posterior.begin(model.layers), x, []
    remaining = list(wanted)
    for index, layer in enumerate(model.layers):
        if isinstance(layer, AppendInputs):
            f = beside(f, x)
            continue
        given, own = f, remaining.pop(0)
        if own is None and given.ndim > 2:
            own = jnp.mean(given, axis=0)
        places = given if own is None else _below(given, own)
        values = draw_rows(index, layer, posterior, places, carry, jr.fold_in(key_rows, index), num_draws)
        f = values[:, : x.shape[0]]
        inputs = jnp.broadcast_to(given, (*f.shape[:-1], given.shape[-1]))
        looks.append((inputs, f, x if own is None else own, f if own is None else values[:, x.shape[0] :]))
    composition = f if model.scaling is None else model.scaling.invert_outputs(f)
    inputs, outputs, places, functions = zip(*looks, strict=True)
    return LayerDraws(rows, inputs, outputs, places, functions, composition)


def _below(rows: Float[Array, "*s N D"], others: Float[Array, "G D"]) -> Float[Array, "*s R D"]:
    others = jnp.broadcast_to(others, (*rows.shape[:-2], *others.shape))
    return jnp.concatenate([rows, others], axis=-2)


def _checked(at, model: DeepGP, num_inputs: int, dtype) -> tuple[Float[Array, "..."] | None, ...]:
    """One set of inputs per GP layer, with as many columns as the layer has inputs."""
    columns, width = [], num_inputs
    for layer in model.layers:
        if isinstance(layer, GPLayer):
            columns.append(width)
            width = layer.num_outputs
        else:
            width += num_inputs
    if at is None:
        return (None,) * len(columns)
    if len(at) != len(columns):
        raise InputError(f"layer_draws(at=...) needs one entry per GP layer, {len(columns)}; got {len(at)}.")
    given = [None if own is None else np.asarray(own, dtype) for own in at]
    for index, (own, width) in enumerate(zip(given, columns, strict=True)):
        if own is not None and (own.ndim != 2 or own.shape[1] != width):
            raise InputError(
                f"layer_draws(at=...) needs shape (G, {width}) for GP layer {index}, a row per input; got {own.shape}."
            )
    return tuple(None if own is None else jnp.asarray(own) for own in given)
