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
from ..fits import AbstractFit, Functions, with_posterior
from ..layers import gp_layers, refuse_latents
from ..model import DeepGP
from ..posteriors import AbstractPosterior
from ..programs import compiled
from ..propagate import input_widths, walk
from ..typing import Array, Float, RandomKey


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


def layer_draws(
    fitted: AbstractFit, x, *, num_draws: int = 25, at: Sequence[Any] | None = None, seed: int = 0
) -> LayerDraws:
    """Draws of all layers of a fitted model, of any posterior family, and of their composition at the rows of x.

    A draw is one function per layer, evaluated at all its inputs together: O(N³). `at` has the inputs at which every
    GP layer is looked at, in the model's units; None takes the average over draws of what it is given at the rows.
    For the picture see `plot.layers`.
    """
    own = with_posterior(fitted, "layer_draws()")
    model = own.model
    refuse_latents(model.layers, "layer_draws()")
    if num_draws < 2:
        raise InputError(f"layer_draws(num_draws=...) must be at least 2 to show a spread; got {num_draws}.")
    rows = check_inputs(x, fitted.num_inputs, fitted.input_names)
    return _draws(model, own.posterior, rows, _checked(at, model, rows), jr.key(seed), num_draws)


@compiled
def _draws(
    model: DeepGP,
    posterior: AbstractPosterior,
    rows: Float[Array, "N D"],
    wanted: dict[int, Float[Array, "..."] | None],
    key: RandomKey,
    num_draws: int,
) -> LayerDraws:
    x = model.inputs_to_model_units(rows)
    key_outputs, key_rows = jr.split(key)
    posterior = posterior.layerwise(key_outputs, (num_draws,))
    visitor, looks = Functions(posterior, posterior.begin(model.layers), key_rows, num_draws), []

    def visit(index, random, given, state):
        own = wanted[index]
        if own is None and given.ndim > 2:
            own = jnp.mean(given, axis=0)
        values, _ = visitor(index, random, given if own is None else _below(given, own), state)
        f = values[:, : x.shape[0]]
        inputs = jnp.broadcast_to(given, (*f.shape[:-1], given.shape[-1]))
        looks.append((inputs, f, given if own is None else own, f if own is None else values[:, x.shape[0] :]))
        return f, state

    given, _ = walk(model.layers, x, visit, None)
    f = given.last
    composition = f if model.scaling is None else model.scaling.invert_outputs(f)
    inputs, outputs, places, functions = zip(*looks, strict=True)
    return LayerDraws(rows, inputs, outputs, places, functions, composition)


def _below(rows: Float[Array, "*s N D"], others: Float[Array, "G D"]) -> Float[Array, "*s R D"]:
    others = jnp.broadcast_to(others, (*rows.shape[:-2], *others.shape))
    return jnp.concatenate([rows, others], axis=-2)


def _checked(at, model: DeepGP, x: Float[Array, "N D"]) -> dict[int, Float[Array, "..."] | None]:
    """One set of inputs per GP layer, with as many columns as the layer has inputs."""
    own = gp_layers(model.layers)
    if at is None:
        return dict.fromkeys(own)
    if len(at) != len(own):
        raise InputError(f"layer_draws(at=...) needs one entry per GP layer, {len(own)}; got {len(at)}.")
    given = dict(zip(own, (None if some is None else np.asarray(some, x.dtype) for some in at), strict=True))
    for number, (index, width) in enumerate(input_widths(model.layers, x).items()):
        some = given[index]
        if some is not None and (some.ndim != 2 or some.shape[1] != width):
            raise InputError(
                f"layer_draws(at=...) needs shape (G, {width}) for GP layer {number}, a row per input; got "
                f"{some.shape}."
            )
    return {index: None if some is None else jnp.asarray(some) for index, some in given.items()}
