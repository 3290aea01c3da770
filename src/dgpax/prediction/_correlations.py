"""How much the layers of a deep model depend on each other under its posterior."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import numpy as np

from ..errors import InputTypeError
from ..fits import AbstractFit, with_posterior
from ..layers import gp_layers
from ..linalg import BlockPattern
from ..posteriors import AbstractPosterior, Chain, Coupled, GaussianBlock, Layers, MeanField, Particles
from ..programs import compiled
from ..typing import Array, Float, Int


class InducingCovariance(NamedTuple):
    """The covariance of all whitened inducing outputs, layer by layer and process by process; of every row, the index
    of its layer in the model and of its process in the layer."""

    covariance: Float[np.ndarray, "K K"]
    layer: Int[np.ndarray, " K"]
    process: Int[np.ndarray, " K"]


def inducing_covariance(fitted: AbstractFit) -> InducingCovariance:
    """Cov[v] under a Gaussian posterior (u = R v with RRᵀ = Kuu), or the sample covariance of a sampler's draws."""
    own = with_posterior(fitted, "inducing_covariance()")
    blocks, layers = _blocks(own.posterior, own.model.layers), gp_layers(own.model.layers)
    widths = [layer.num_blocks for layer in layers.values()]
    sizes = [layer.own_inducing().num_inducing for layer in layers.values()]
    layer, process = np.repeat(list(layers), widths), np.concatenate([np.arange(width) for width in widths])
    there = np.arange(blocks.shape[-1]) < np.repeat(sizes, widths)[:, None]
    whole = np.moveaxis(blocks, 1, 2).reshape(there.size, there.size)[np.ix_(there.ravel(), there.ravel())]
    return InducingCovariance(whole, np.repeat(layer, there.sum(axis=1)), np.repeat(process, there.sum(axis=1)))


def layer_correlations(fitted: AbstractFit) -> Float[np.ndarray, "L L"]:
    """The root mean square of the correlation coefficients between the inducing outputs of any two GP layers.

    On the diagonal, of those within the layer, each with the others. All are 0 under a prior, and all off the diagonal
    under the mean field; S draws of a sampler show about 1/√S where nothing depends on anything.
    """
    covariance, layer, _ = inducing_covariance(fitted)
    deviation = np.sqrt(np.diagonal(covariance))
    squared = (covariance / (deviation[:, None] * deviation)) ** 2
    member = (layer == np.unique(layer)[:, None]).astype(squared.dtype)
    np.fill_diagonal(squared, 0.0)
    pairs = member @ (1.0 - np.eye(len(layer), dtype=squared.dtype)) @ member.T
    return np.sqrt(member @ squared @ member.T / np.maximum(pairs, 1.0))


def _blocks(posterior: AbstractPosterior, layers: Layers) -> Float[np.ndarray, "n n M M"]:
    """The covariance by pairs of processes; layers with fewer inducing outputs are filled up, with anything."""
    if isinstance(posterior, MeanField):
        own = [np.asarray(block.root.value) for block in posterior.blocks if isinstance(block, GaussianBlock)]
        return _on_the_diagonal([root @ root.T for roots in own for root in roots])
    if isinstance(posterior, Particles):
        draws = [np.asarray(block) for block in posterior.blocks if eqx.is_array(block)]
        return _of_draws([block.reshape(-1, *block.shape[-2:]) for block in draws])
    if not isinstance(posterior, Coupled | Chain):
        raise InputTypeError(
            f"{type(posterior).__name__} holds no Gaussian over the inducing outputs of all layers, nor draws of them; "
            "the families that do are MeanField, Coupled, Chain and Particles."
        )
    pattern, covariance = _joint_covariance(posterior, layers)
    i, j = np.transpose(pattern.pairs)
    values = np.asarray(covariance)
    whole = np.zeros((pattern.size, pattern.size, *values.shape[1:]), values.dtype)
    whole[j, i] = values.swapaxes(-1, -2)
    whole[i, j] = values
    return whole


@compiled
def _joint_covariance(posterior: Coupled | Chain, layers: Layers) -> tuple[BlockPattern, Float[Array, "J M M"]]:
    carry = posterior.begin(layers)
    return carry.pattern, carry.covariance


def _on_the_diagonal(covariances: list[Float[np.ndarray, "_ _"]]) -> Float[np.ndarray, "n n M M"]:
    M = max(map(len, covariances))
    whole = np.zeros((len(covariances), len(covariances), M, M), covariances[0].dtype)
    for index, own in enumerate(covariances):
        whole[index, index, : len(own), : len(own)] = own
    return whole


def _of_draws(draws: list[Float[np.ndarray, "S _ _"]]) -> Float[np.ndarray, "n n M M"]:
    M = max(block.shape[-1] for block in draws)
    v = np.concatenate([np.pad(block, [(0, 0), (0, 0), (0, M - block.shape[-1])]) for block in draws], axis=1)
    centred = v - v.mean(axis=0)
    return np.einsum("sia,sjb->ijab", centred, centred) / (len(v) - 1)
