"""The one forward pass, for training, prediction and every posterior family; and joint distributions of a layer.

A layer's output has four covariances [FRAMEWORK, Table 2]: of every number by itself (`layer_marginal`), across the
rows (`layer_over_inputs`), across the outputs (`layer_over_outputs`), and across both (`layer_over_both`).
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import jax.random as jr

from .conditional import project, whitened_cross
from .covariances import IndependentProcesses, PatchProcesses, SharedProcesses
from .data import Dataset
from .distributions import Gaussian, GaussianOverBoth, GaussianOverInputs, GaussianOverOutputs
from .errors import InputError
from .layers import AbstractLayer, AppendInputs, GPLayer, LatentVariables
from .linalg import einsum, matmul, safe_cholesky
from .posteriors import AbstractPosterior, Carry, Layers, Moments
from .typing import Array, Float, RandomKey

Noise = tuple[Float[Array, "..."] | None, ...]


def propagate(
    layers: Layers,
    posterior: AbstractPosterior,
    x: Float[Array, "*b N D"],
    carry: Carry,
    noise: Noise = (),
    *,
    batch: Dataset | None = None,
) -> Gaussian:
    """q(f_L(x)) given draws of the inner layers, one per leading axis of the noise [DSVI, eqs. 13-14].

    Each layer is sampled at every row by itself; what comes before the first draw is computed once for all samples.
    Latent variables have their posterior where the rows are those of a `batch` of the training data, else their prior.
    """
    *_, last = layer_inputs(layers, posterior, x, carry, noise, batch=batch)
    return layer_marginal(len(layers) - 1, as_gp(layers[-1]), posterior, last, carry)


def layer_inputs(
    layers: Layers,
    posterior: AbstractPosterior,
    x: Float[Array, "*b N D"],
    carry: Carry,
    noise: Noise = (),
    *,
    batch: Dataset | None = None,
) -> list[Float[Array, "..."]]:
    """What every layer of `propagate` is given: x itself, then a draw of what stands before it."""
    given = [x]
    for index, layer in enumerate(layers[:-1]):
        if isinstance(layer, AppendInputs):
            given.append(_beside(given[-1], x))
        elif isinstance(layer, LatentVariables):
            given.append(_beside(given[-1], draw_latents(index, posterior, _of(noise, index), batch)))
        else:
            given.append(_draw(index, as_gp(layer), posterior, given[-1], carry, _of(noise, index)))
    return given


def draw_noise(layers: Layers, key: RandomKey, num_samples: int, num_rows: int, dtype) -> Noise:
    """Standard normal numbers for `propagate`: [S, N, Q] for every inner layer that is drawn, None for the others."""
    return tuple(
        jr.normal(jr.fold_in(key, index), (num_samples, num_rows, _num_draws(layer)), dtype)
        if _num_draws(layer)
        else None
        for index, layer in enumerate(layers[:-1])
    )


def draw_latents(
    index: int, posterior: AbstractPosterior, noise: Float[Array, "*b N Q"], batch: Dataset | None
) -> Float[Array, "*b N Q"]:
    """w_n from its posterior, for rows of the training data, or from its prior."""
    if batch is None:
        return noise
    q = posterior.latents(index, batch)
    return q.mean + q.stddev * noise


def _draw(index: int, layer: GPLayer, posterior: AbstractPosterior, x, carry: Carry, noise) -> Float[Array, "*b N P"]:
    """A draw of the layer's outputs, every row by itself; outputs that depend on each other are drawn together."""
    processes = layer.processes()
    if isinstance(processes, SharedProcesses):
        joint = layer_over_outputs(index, layer, posterior, x, carry)
        return joint.mean + matmul(safe_cholesky(joint.covariance).factor, noise[..., None])[..., 0]
    projection = project(processes.kernel, processes.rows(x), posterior.inducing(index, layer), carry.root(index))
    if isinstance(processes, PatchProcesses):
        drawn = _draw_patches(processes, posterior.moments(index, projection.A, carry), projection.residual, noise)
        return drawn + layer.mean(x)
    q = posterior.marginal(index, projection, carry)
    draw = q.mean + q.stddev * noise
    if processes.mixing is not None:
        draw = matmul(draw, processes.mixing.T)
    return draw + layer.mean(x)


def _draw_patches(processes: PatchProcesses, moments: Moments, residual: Float[Array, "*b Q rows"], noise):
    """The patches of an image share one draw of the inducing outputs; what these leave open is drawn patch by patch."""
    shape = (processes.grid.num_patches, processes.num_channels)
    outputs, rest = jnp.split(noise, [noise.shape[-1] - math.prod(shape)], axis=-1)
    v = outputs.reshape(*noise.shape[:-1], processes.num_channels, -1)
    spread = moments.spread.reshape(*moments.spread.shape[:-2], -1, shape[0], moments.spread.shape[-1])
    shared = einsum("...cnpr,...ncr->...npc", spread, v)
    left = Gaussian(_outputs_last(moments.mean), jnp.broadcast_to(_outputs_last(residual), moments.mean.mT.shape))
    mean, stddev = (part.reshape(*part.shape[:-2], -1, *shape) for part in (left.mean, left.stddev))
    draw = mean + shared + stddev * rest.reshape(*rest.shape[:-1], *shape)
    return draw.reshape(*draw.shape[:-2], -1)


def _num_draws(layer: AbstractLayer) -> int:
    if isinstance(layer, LatentVariables):
        return layer.num_latents
    if not isinstance(layer, GPLayer):
        return 0
    processes = layer.processes()
    if isinstance(processes, PatchProcesses):
        return layer.num_outputs + processes.num_channels * layer.own_inducing().num_inducing
    return layer.num_outputs if isinstance(processes, SharedProcesses) else processes.num_blocks(layer.num_outputs)


def _beside(left: Float[Array, "*b N D"], right: Float[Array, "*c N E"]) -> Float[Array, "*d N F"]:
    samples = jnp.broadcast_shapes(left.shape[:-1], right.shape[:-1])
    parts = [jnp.broadcast_to(part, (*samples, part.shape[-1])) for part in (left, right)]
    return jnp.concatenate(parts, axis=-1)


def _of(noise: Noise, index: int) -> Float[Array, "*b N Q"]:
    drawn = noise[index] if index < len(noise) else None
    if drawn is None:
        raise TypeError(
            f"propagate(...) draws layer {index}: pass noise=draw_noise(layers, key, num_samples, N, dtype)."
        )
    return drawn


def as_gp(layer: AbstractLayer) -> GPLayer:
    """A layer that must be a GP, or an error that says so."""
    if not isinstance(layer, GPLayer):
        raise InputError(f"{type(layer).__name__} can't be the last layer: put a GPLayer behind it.")
    return layer


def layer_marginal(
    index: int, layer: GPLayer, posterior: AbstractPosterior, x: Float[Array, "*b N D"], carry: Carry
) -> Gaussian:
    """q(f_l(x)), every row and output by itself."""
    processes = layer.processes()
    projection = project(processes.kernel, processes.rows(x), posterior.inducing(index, layer), carry.root(index))
    q = posterior.marginal(index, projection, carry)
    mean, variance = q.mean, q.variance
    if isinstance(processes, PatchProcesses):
        mean, variance = processes.images(mean), processes.images(variance)
    elif isinstance(processes, IndependentProcesses) and processes.mixing is not None:
        mean, variance = matmul(mean, processes.mixing.T), matmul(variance, processes.mixing.T**2)
    return Gaussian(mean + layer.mean(x), variance)


def layer_over_inputs(
    index: int, layer: GPLayer, posterior: AbstractPosterior, x: Float[Array, "*b N D"], carry: Carry
) -> GaussianOverInputs:
    """q(f_l(x)) with the covariance between the rows, [..., P, N, N]."""
    processes = layer.processes()
    if isinstance(processes, PatchProcesses):
        patch_by_patch = jnp.swapaxes(processes.grid.patches(x), -2, -3)
        mean, covariance = _jointly(index, layer, processes, posterior, patch_by_patch, carry)
        covariance = covariance.reshape(*covariance.shape[:-4], layer.num_outputs, *covariance.shape[-2:])
        return GaussianOverInputs(mean.reshape(*x.shape[:-2], -1, x.shape[-2]).mT + layer.mean(x), covariance)
    if isinstance(processes, SharedProcesses):
        both = layer_over_both(index, layer, posterior, x, carry)
        return GaussianOverInputs(both.mean, einsum("...npmp->...pnm", both.covariance))
    mean, covariance = _independent(index, layer, processes, posterior, x, carry)
    if processes.mixing is not None:
        covariance = einsum("pl,...lnm->...pnm", processes.mixing**2, covariance)
    return GaussianOverInputs(mean, covariance)


def layer_over_outputs(
    index: int, layer: GPLayer, posterior: AbstractPosterior, x: Float[Array, "*b N D"], carry: Carry
) -> GaussianOverOutputs:
    """q(f_l(x)) with the covariance between the outputs, [..., N, P, P]."""
    processes = layer.processes()
    if isinstance(processes, PatchProcesses):
        mean, covariance = _jointly(index, layer, processes, posterior, processes.grid.patches(x), carry)
        apart = einsum("...cpq,cd->...pcqd", covariance, jnp.eye(processes.num_channels, dtype=x.dtype))
        size = layer.num_outputs
        mean = mean.mT.reshape(*x.shape[:-1], size) + layer.mean(x)
        return GaussianOverOutputs(mean, apart.reshape(*x.shape[:-1], size, size))
    projection = project(processes.kernel, x, posterior.inducing(index, layer), carry.root(index))
    if isinstance(processes, SharedProcesses):
        moments = posterior.moments(index, projection.A, carry)
        prior = processes.kernel.over_outputs(x[..., None, :, :])
        covariance = prior + einsum("...pnm,...qnm->...npq", moments.spread, moments.spread)
        covariance = covariance - einsum("...pnm,...qnm->...npq", projection.A, projection.A)
        return GaussianOverOutputs(_outputs_last(moments.mean) + layer.mean(x), covariance)
    q = posterior.marginal(index, projection, carry)
    W = _mixing(processes, layer, q.mean.dtype)
    covariance = einsum("pl,ql,...nl->...npq", W, W, q.variance)
    return GaussianOverOutputs(matmul(q.mean, W.T) + layer.mean(x), covariance)


def layer_over_both(
    index: int, layer: GPLayer, posterior: AbstractPosterior, x: Float[Array, "*b N D"], carry: Carry
) -> GaussianOverBoth:
    """q(f_l(x)) with the covariance between all rows and outputs, [..., N, P, N, P]."""
    processes = layer.processes()
    if isinstance(processes, PatchProcesses):
        mean, covariance = _jointly(index, layer, processes, posterior, processes.rows(x), carry)
        N, size, split = x.shape[-2], layer.num_outputs, processes.grid.num_patches
        covariance = covariance.reshape(*covariance.shape[:-2], N, split, N, split)
        apart = einsum("...cnpmq,cd->...npcmqd", covariance, jnp.eye(processes.num_channels, dtype=x.dtype))
        mean = processes.images(_outputs_last(mean)) + layer.mean(x)
        return GaussianOverBoth(mean, apart.reshape(*x.shape[:-2], N, size, N, size))
    if isinstance(processes, SharedProcesses):
        A = whitened_cross(processes.kernel, x, posterior.inducing(index, layer), carry.root(index))
        moments = posterior.moments(index, A, carry)
        rows = x[..., None, :, :]
        covariance = einsum("...pnqm->...npmq", processes.kernel.cross(rows, rows))
        covariance = covariance + einsum("...pnr,...qmr->...npmq", moments.spread, moments.spread)
        covariance = covariance - einsum("...pnr,...qmr->...npmq", A, A)
        return GaussianOverBoth(_outputs_last(moments.mean) + layer.mean(x), covariance)
    mean, covariance = _independent(index, layer, processes, posterior, x, carry)
    W = _mixing(processes, layer, mean.dtype)
    return GaussianOverBoth(mean, einsum("pl,ql,...lnm->...npmq", W, W, covariance))


def _independent(index, layer: GPLayer, processes: IndependentProcesses, posterior: AbstractPosterior, x, carry: Carry):
    """The mean of the outputs, and the covariance of every independent process across the rows."""
    mean, covariance = _jointly(index, layer, processes, posterior, x, carry)
    return matmul(_outputs_last(mean), _mixing(processes, layer, x.dtype).T) + layer.mean(x), covariance


def _jointly(index, layer: GPLayer, processes, posterior: AbstractPosterior, rows, carry: Carry):
    """Mean [..., Q, N] and covariance [..., Q, N, N] of every independent process across rows of its kernel."""
    A = whitened_cross(processes.kernel, rows, posterior.inducing(index, layer), carry.root(index))
    moments: Moments = posterior.moments(index, A, carry)
    covariance = processes.kernel.gram(rows[..., None, :, :]) - matmul(A, A.mT)
    return moments.mean, covariance + matmul(moments.spread, moments.spread.mT)


def _mixing(processes: IndependentProcesses, layer: GPLayer, dtype) -> Float[Array, "P Q"]:
    return jnp.eye(layer.num_outputs, dtype=dtype) if processes.mixing is None else processes.mixing


def _outputs_last(mean: Float[Array, "*b P N"]) -> Float[Array, "*b N P"]:
    return jnp.swapaxes(mean, -1, -2)
