"""Which layers a posterior is about: the one place that asks what kind a layer is of."""

from __future__ import annotations

from ..errors import InputError
from ._base import AbstractLayer
from ._gp import GPLayer
from ._inputs import LatentVariables

Layers = tuple[AbstractLayer, ...]


def gp_layers(layers: Layers) -> dict[int, GPLayer]:
    """The GPs of a model, by the numbers of their layers."""
    return {index: layer.random for index, layer in enumerate(layers) if isinstance(layer.random, GPLayer)}


def latent_layers(layers: Layers) -> dict[int, LatentVariables]:
    """The latent variables of a model, by the numbers of their layers."""
    return {index: layer.random for index, layer in enumerate(layers) if isinstance(layer.random, LatentVariables)}


def last_gp(layers: Layers) -> GPLayer:
    """The last layer, which must be a GP so that f is Gaussian given the layers before."""
    if not isinstance(layers[-1], GPLayer):
        raise InputError(f"{type(layers[-1]).__name__} can't be the last layer: put a GPLayer behind it.")
    return layers[-1]


def refuse_latents(layers: Layers, what: str) -> None:
    """An error if rows have latent variables of their own."""
    if latent_layers(layers):
        raise InputError(f"{what} is about functions of x; latent variables make outputs differ from row to row.")
