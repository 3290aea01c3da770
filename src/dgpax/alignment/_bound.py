"""The evidence lower bound of warped sequences."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from ..distributions import Gaussian
from ..linalg import matmul
from ..objectives import VariationalTerms
from ..typing import Array, Float, RandomKey
from ..warps import IncreasingFunctions
from ._model import WarpedModel
from ._posterior import AbstractWarpedPosterior, FunctionsGivenWarps
from ._sequences import Sequences


class WarpDraw(eqx.Module):
    """Warps, and what is believed about the functions given them."""

    warps: IncreasingFunctions
    functions: FunctionsGivenWarps


def draw_warps(model: WarpedModel, posterior: AbstractWarpedPosterior, num_sequences: int, key: RandomKey) -> WarpDraw:
    """A draw of all warps together, by one draw of their inducing outputs, on which the functions depend too."""
    key_outputs, key_path = jr.split(key)
    dtype = posterior.warps.mean.dtype
    noise = jr.normal(key_outputs, (num_sequences, model.warp.num_inducing), dtype)
    path = jr.normal(key_path, (num_sequences, model.warp.num_noise), dtype)
    warps = model.warp.draw(posterior.warps.draw(noise), path)
    return WarpDraw(warps, posterior.functions(model, warps, noise))


def function_marginals(model: WarpedModel, functions: FunctionsGivenWarps, x: Float[Array, "J N"]) -> Gaussian:
    """f_j(x_j) at every point by itself, given a draw of the warps."""
    projection = model.project(x, functions.locations, functions.root)
    A, residual = projection.A[0], projection.residual[0]
    variance = residual + jnp.sum(matmul(A, functions.spread) ** 2, axis=1)
    return Gaussian(matmul(A, functions.mean).reshape(x.shape), variance.reshape(x.shape))


def warped_elbo(
    model: WarpedModel, posterior: AbstractWarpedPosterior, data: Sequences, *, key: RandomKey, num_samples: int = 5
) -> VariationalTerms:
    """E[Σ_jn log p(y_jn | f_j(g_j(t_jn)))] − KL [CU, eqs. 5 and 20-21]: warps are drawn, functions integrated out."""

    def terms(key: RandomKey):
        draw = draw_warps(model, posterior, data.num_sequences, key)
        q = function_marginals(model, draw.functions, draw.warps(data.t))
        noise = model.noise_variance.value[:, None]
        squares = (data.y - q.mean) ** 2 + q.variance
        log_likelihood = -0.5 * (squares / noise + jnp.log(2.0 * math.pi * noise))
        return jnp.sum(jnp.where(data.observed, log_likelihood, 0.0)), (
            posterior.functions_kl(draw.functions),
            draw.functions.root.jitter,
        )

    log_likelihoods, (kls, jitters) = jax.vmap(terms)(jr.split(key, num_samples))
    return VariationalTerms(
        log_likelihood=jnp.mean(log_likelihoods),
        kl=posterior.warps.kl() + jnp.mean(kls),
        latent_kl=0.0,
        jitter=jnp.max(jitters),
    )
