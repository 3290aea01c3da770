"""The one forward pass, for training, prediction and every posterior family; and joint distributions of a layer.

A layer's output has four covariances [FRAMEWORK, Table 2]: of every number by itself (`layer_marginal`), across the
rows (`layer_over_inputs`), across the outputs (`layer_over_outputs`), and across both (`layer_over_both`).
"""

from __future__ import annotations

import jax.numpy as jnp
import jax.random as jr

from .conditional import project, whitened_cross
from .covariances import IndependentProcesses, SharedProcesses
from .distributions import Gaussian, GaussianOverBoth, GaussianOverInputs, GaussianOverOutputs
from .layers import GPLayer
from .linalg import einsum, matmul
from .posteriors import AbstractPosterior, Carry, Moments
from .typing import Array, Float, RandomKey


def propagate(
    layers: tuple[GPLayer, ...],
    posterior: AbstractPosterior,
    x: Float[Array, "*b N D"],
    carry: Carry,
    *,
    key: RandomKey | None = None,
) -> Gaussian:
    """q(f_L(x)) given one draw of the inner layers per leading axis of x [DSVI, eqs. 13-14].

    Each layer is sampled at every row by itself. A model with one layer needs no key.
    """
    for index, layer in enumerate(layers[:-1]):
        q = layer_marginal(index, layer, posterior, x, carry)
        noise = jr.normal(jr.fold_in(_required(key), index), q.mean.shape, q.mean.dtype)
        x = q.mean + q.stddev * noise
    return layer_marginal(len(layers) - 1, layers[-1], posterior, x, carry)


def layer_marginal(
    index: int, layer: GPLayer, posterior: AbstractPosterior, x: Float[Array, "*b N D"], carry: Carry
) -> Gaussian:
    """q(f_l(x)), every row and output by itself."""
    processes = layer.processes()
    projection = project(processes.kernel, x, posterior.inducing(index, layer), carry.roots[index])
    q = posterior.marginal(index, projection, carry)
    mean, variance = q.mean, q.variance
    if isinstance(processes, IndependentProcesses) and processes.mixing is not None:
        mean, variance = matmul(mean, processes.mixing.T), matmul(variance, processes.mixing.T**2)
    return Gaussian(mean + layer.mean(x), variance)


def layer_over_inputs(
    index: int, layer: GPLayer, posterior: AbstractPosterior, x: Float[Array, "*b N D"], carry: Carry
) -> GaussianOverInputs:
    """q(f_l(x)) with the covariance between the rows, [..., P, N, N]."""
    processes = layer.processes()
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
    projection = project(processes.kernel, x, posterior.inducing(index, layer), carry.roots[index])
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
    if isinstance(processes, SharedProcesses):
        A = whitened_cross(processes.kernel, x, posterior.inducing(index, layer), carry.roots[index])
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
    A = whitened_cross(processes.kernel, x, posterior.inducing(index, layer), carry.roots[index])
    moments: Moments = posterior.moments(index, A, carry)
    prior = processes.kernel.gram(x[..., None, :, :])
    covariance = prior - matmul(A, jnp.swapaxes(A, -1, -2))
    covariance = covariance + matmul(moments.spread, jnp.swapaxes(moments.spread, -1, -2))
    mean = matmul(_outputs_last(moments.mean), _mixing(processes, layer, x.dtype).T)
    return mean + layer.mean(x), covariance


def _mixing(processes: IndependentProcesses, layer: GPLayer, dtype) -> Float[Array, "P Q"]:
    return jnp.eye(layer.num_outputs, dtype=dtype) if processes.mixing is None else processes.mixing


def _outputs_last(mean: Float[Array, "*b P N"]) -> Float[Array, "*b N P"]:
    return jnp.swapaxes(mean, -1, -2)


def _required(key: RandomKey | None) -> RandomKey:
    if key is None:
        raise TypeError("propagate(...) through more than one layer draws samples: pass key=jax.random.key(seed).")
    return key
