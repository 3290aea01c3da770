"""Draws of warps and of the functions that belong to them."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax

from ..distributions import AbstractJointGaussian, Gaussian, GaussianOverBoth, GaussianOverInputs, GaussianOverOutputs
from ..linalg import matmul, safe_cholesky, smallest_spread
from ..programs import compiled
from ..typing import Array, Float, Key, RandomKey
from ._bound import draw_warps, function_marginals
from ._model import WarpedModel
from ._posterior import AbstractWarpedPosterior, FunctionsGivenWarps


class WarpedDraws(eqx.Module):
    """At the same grid: warps g_j (functions of time), aligned functions f_j (of warped time), and the compositions
    f_j(g_j(·)) (of time), which are to look like the sequences. Number s of each belongs to one draw."""

    grid: Float[Array, " G"]
    warps: Float[Array, "S J G"]
    functions: Float[Array, "S J G"]
    compositions: Float[Array, "S J G"]


def pairwise_distance(functions: Float[Array, "*s J G"]) -> Float[Array, "*s"]:
    """The root mean square of f_i(x) − f_k(x) over x, averaged over all pairs of sequences [CU, appendix D]."""
    J = functions.shape[-2]
    first, second = jnp.triu_indices(J, 1)
    squares = (functions[..., first, :] - functions[..., second, :]) ** 2
    return jnp.mean(jnp.sqrt(jnp.mean(squares, axis=-1)), axis=-1)


@compiled
def draw_all(
    model: WarpedModel,
    posterior: AbstractWarpedPosterior,
    grid: Float[Array, " G"],
    key: RandomKey,
    num_sequences: int,
    num_draws: int,
) -> WarpedDraws:
    """Draws in the model's units, one after the other."""
    same = jnp.broadcast_to(grid, (num_sequences, grid.shape[0]))

    def one(key: RandomKey):
        key_warps, key_functions = jr.split(key)
        draw = draw_warps(model, posterior, num_sequences, key_warps)
        warped = draw.warps(grid)
        values = _draw_jointly(model, draw.functions, jnp.concatenate([same, warped], axis=1), key_functions)
        return warped, values[:, : grid.shape[0]], values[:, grid.shape[0] :]

    return WarpedDraws(grid, *lax.map(one, jr.split(key, num_draws)))


def _draw_jointly(
    model: WarpedModel, functions: FunctionsGivenWarps, x: Float[Array, "J A"], key: RandomKey
) -> Float[Array, "J A"]:
    """One draw of f_1 … f_J at all points together."""
    mean, covariance = _joint(model, functions, x)
    factor = safe_cholesky(covariance + jnp.diag(smallest_spread(x.dtype) * model.variance(x))).factor
    return (mean + matmul(factor, jr.normal(key, (x.size,), x.dtype))).reshape(x.shape)


def _joint(
    model: WarpedModel, functions: FunctionsGivenWarps, x: Float[Array, "J A"]
) -> tuple[Float[Array, " JA"], Float[Array, "JA JA"]]:
    """Mean and covariance of f_1 … f_J at all points together."""
    A = model.project(x, functions.locations, functions.root).A[0]
    spread = matmul(A, functions.spread)
    return matmul(A, functions.mean), model.covariance(x, x) - matmul(A, A.T) + matmul(spread, spread.T)


@compiled
def latent_given_warps(
    model: WarpedModel,
    posterior: AbstractWarpedPosterior,
    times: Float[Array, " N"],
    keys: Key[Array, " S"],
    num_sequences: int,
    over: str | None,
) -> Gaussian | AbstractJointGaussian:
    """The compositions at these times given draws of the warps, one per key; outputs are the sequences."""

    def given(key: RandomKey):
        draw = draw_warps(model, posterior, num_sequences, key)
        return draw.functions, draw.warps(times)

    def by_itself(key: RandomKey):
        functions, warped = given(key)
        q = function_marginals(model, functions, warped)
        return Gaussian(q.mean.T, q.variance.T)

    def outputs(key: RandomKey):
        functions, warped = given(key)
        return GaussianOverOutputs(*jax.vmap(lambda x: _joint(model, functions, x[:, None]))(warped.T))

    def both(key: RandomKey):
        functions, warped = given(key)
        mean, covariance = _joint(model, functions, warped)
        apart = covariance.reshape(*warped.shape, *warped.shape)
        return GaussianOverBoth(mean.reshape(warped.shape).T, jnp.transpose(apart, (1, 0, 3, 2)))

    def inputs(key: RandomKey):
        q = both(key)
        return GaussianOverInputs(q.mean, jnp.einsum("njmj->jnm", q.covariance))

    asked = {None: by_itself, "outputs": outputs, "inputs": inputs, "both": both}
    return lax.map(asked[over], keys)
