"""What a model and its posterior say about f, in the model's units."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from ..distributions import AbstractJointGaussian, Gaussian, GaussianOverInputs
from ..errors import InputError
from ..layers import GPLayer, last_gp, refuse_latents
from ..linalg import smallest_spread
from ..model import DeepGP
from ..posteriors import AbstractCarry, AbstractPosterior
from ..programs import compiled
from ..propagate import Noise, even_noise, for_rows, outputs_of, propagate, walk
from ..typing import Array, Float, RandomKey

KEY_OF_DRAWS = 2**31
OVER_ROWS = {"inputs": "over_inputs", "both": "over_both"}


def latent(
    model: DeepGP,
    posterior: AbstractPosterior,
    x: Float[Array, "N D"],
    *,
    num_samples: int,
    seed: int,
    over: str | None = None,
) -> Gaussian | AbstractJointGaussian:
    """q(f) as `AbstractFit.latent` has it, or with a covariance `over` something as its `latent_jointly`.

    All rows share the draws of the inner layers, evenly spread. Where rows are looked at together the inner layers are
    drawn jointly too.
    """
    if num_samples < 1:
        raise InputError(f"num_samples must be at least 1; got {num_samples}.")
    num_samples = posterior.suitable_samples(num_samples)
    key = jr.fold_in(jr.key(seed), KEY_OF_DRAWS)
    if over in OVER_ROWS:
        refuse_latents(model.layers, f'predict_jointly(over="{over}")')
        return _over_rows(model, posterior, x, key, num_samples, OVER_ROWS[over])
    if over not in (None, "outputs"):
        raise InputError(f'A joint distribution is over "outputs", "inputs" or "both"; got {over!r}.')
    noise = even_noise(model.layers, num_samples, seed, x.dtype)
    return _row_by_row(model, posterior, x, key, noise, num_samples, "marginal" if over is None else "by_row")


@compiled
def _row_by_row(
    model: DeepGP,
    posterior: AbstractPosterior,
    x: Float[Array, "N D"],
    key: RandomKey,
    noise: Noise,
    num_samples: int,
    shape: str,
) -> Gaussian | AbstractJointGaussian:
    functions = posterior.tractable(key, (num_samples,))
    carry = functions.begin(model.layers)
    return getattr(propagate(model.layers, functions, x, carry, for_rows(noise, len(x))), shape)()


@compiled
def _over_rows(
    model: DeepGP, posterior: AbstractPosterior, x: Float[Array, "N D"], key: RandomKey, num_samples: int, shape: str
) -> AbstractJointGaussian:
    inner = model.layers[:-1]
    key_outputs, key_rows = jr.split(key)
    if any(layer.random is not None for layer in inner):
        posterior = posterior.layerwise(key_outputs, (num_samples,))
    carry = posterior.begin(model.layers)
    given, _ = walk(inner, x, Functions(posterior, carry, key_rows, num_samples), None)
    return getattr(outputs_of(len(inner), last_gp(model.layers), posterior, given.last, carry), shape)()


@compiled
def function_draws(
    model: DeepGP, posterior: AbstractPosterior, x: Float[Array, "N D"], key: RandomKey, num_draws: int
) -> Float[Array, "S N P"]:
    """Draws of f at all rows together, through every layer: O(N³)."""
    key_outputs, key_rows = jr.split(key)
    drawn = posterior.layerwise(key_outputs, (num_draws,))
    given, _ = walk(model.layers, x, Functions(drawn, drawn.begin(model.layers), key_rows, num_draws), None)
    return given.last


class Functions(eqx.Module):
    """The visitor that draws every layer at all rows together, as functions."""

    posterior: AbstractPosterior
    carry: AbstractCarry
    key: RandomKey
    num_draws: int = eqx.field(static=True)

    def __call__(self, index: int, random: GPLayer, x: Float[Array, "*s N D"], state):
        """One draw for every draw that the rows have, if they do."""
        joint = outputs_of(index, random, self.posterior, x, self.carry).over_dependent()
        processes = random.processes()
        prior = jnp.mean(processes.kernel.diag(processes.rows(x)[..., None, :, :]))
        floor = prior * smallest_spread(joint.mean.dtype)
        joint = eqx.tree_at(lambda q: q.covariance, joint, joint.covariance + floor * _identity(joint))
        drawn = joint.sample(jr.fold_in(self.key, index), self.num_draws if joint.mean.ndim == 2 else 1)
        return (drawn if joint.mean.ndim == 2 else drawn[0]), state


def _identity(joint: AbstractJointGaussian) -> Float[Array, "..."]:
    """I in the shape of the covariance: over the rows, or over rows and outputs."""
    N, P = joint.mean.shape[-2:]
    if isinstance(joint, GaussianOverInputs):
        return jnp.eye(N, dtype=joint.mean.dtype)
    return jnp.eye(N * P, dtype=joint.mean.dtype).reshape(N, P, N, P)
