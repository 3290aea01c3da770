"""What the layers inside a deep model do."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from ..distributions import AbstractJointGaussian, Gaussian, GaussianOverInputs, Mixture
from ..errors import InputError
from ..inference import Fit
from ..layers import AppendInputs, GPLayer, LatentVariables
from ..model import DeepGP
from ..posteriors import AbstractCarry, AbstractPosterior
from ..propagate import Noise, beside, even_noise, for_rows, layer_inputs, layer_outputs
from ..typing import Array, Float, RandomKey
from ._predict import model_inputs

SMALLEST_SPREAD = 1e-9


def predict_layers(fitted: Fit, x, *, num_samples: int = 100, seed: int = 0) -> tuple[Gaussian | Mixture, ...]:
    """The distribution of every GP layer's output at the rows of x, in the model's units; the last is f itself.

    The first layer's is Gaussian, those behind it are mixtures over samples.
    """
    inputs = model_inputs(fitted, x)
    noise = even_noise(fitted.model.layers, num_samples, seed, inputs.dtype)
    outputs = _outputs(fitted.model, fitted.posterior, inputs, jr.key(seed), noise, num_samples)
    return tuple(q if q.mean.ndim == 2 else Mixture(q) for q in outputs)


@eqx.filter_jit
def _outputs(
    model: DeepGP, posterior: AbstractPosterior, x: Float[Array, "N D"], key: RandomKey, noise: Noise, num_samples: int
) -> list[Gaussian]:
    posterior = posterior.tractable(jr.fold_in(key, len(model.layers)), (num_samples,))
    given = layer_inputs(model.layers, posterior, x, posterior.begin(model.layers), for_rows(noise, x.shape[0]))
    return [
        layer_outputs(index, layer, posterior, at, drawn).marginal()
        for index, (layer, (at, drawn)) in enumerate(zip(model.layers, given, strict=True))
        if isinstance(layer, GPLayer)
    ]


def sample_jointly(fitted: Fit, x, *, num_samples: int = 10, seed: int = 0) -> Float[Array, "S N P"]:
    """Draws of f at all rows of x together, through every layer, in raw units: O(N³).

    For values at more inputs later, of the same functions, there is `draw_functions`.
    """
    model = fitted.model
    if any(isinstance(layer, LatentVariables) for layer in model.layers):
        raise InputError("sample_jointly() draws functions of x; latent variables make y differ from row to row.")
    draws = _joint_draws(model, fitted.posterior, model_inputs(fitted, x), jr.key(seed), num_samples)
    return draws if model.scaling is None else model.scaling.invert_outputs(draws)


@eqx.filter_jit
def _joint_draws(
    model: DeepGP, posterior: AbstractPosterior, x: Float[Array, "N D"], key: RandomKey, num_samples: int
) -> Float[Array, "S N P"]:
    key_outputs, key_rows = jr.split(key)
    posterior = posterior.layerwise(key_outputs, (num_samples,))
    carry, f = posterior.begin(model.layers), x
    for index, layer in enumerate(model.layers):
        if isinstance(layer, AppendInputs):
            f = beside(f, x)
        else:
            f = draw_rows(index, layer, posterior, f, carry, jr.fold_in(key_rows, index), num_samples)
    return f


def draw_rows(
    index: int,
    layer: GPLayer,
    posterior: AbstractPosterior,
    x: Float[Array, "*s N D"],
    carry: AbstractCarry,
    key: RandomKey,
    num_draws: int,
) -> Float[Array, "S N P"]:
    """Draws of a layer at all rows together, one for every draw that the rows have if they do.

    Where inducing points leave next to nothing open, rounding makes the covariance indefinite: the prior's variance
    times SMALLEST_SPREAD (or ten units of rounding) is added, a standard deviation of 3e-5 of the prior's.
    """
    joint, processes = layer_outputs(index, layer, posterior, x, carry).over_dependent(), layer.processes()
    prior = jnp.mean(processes.kernel.diag(processes.rows(x)[..., None, :, :]))
    floor = prior * max(SMALLEST_SPREAD, 10.0 * float(jnp.finfo(joint.mean.dtype).eps))
    joint = eqx.tree_at(lambda q: q.covariance, joint, joint.covariance + floor * _identity(joint))
    drawn = joint.sample(key, num_draws if joint.mean.ndim == 2 else 1)
    return drawn if joint.mean.ndim == 2 else drawn[0]


def _identity(joint: AbstractJointGaussian) -> Float[Array, "..."]:
    """I in the shape of the covariance: over the rows, or over rows and outputs."""
    N, P = joint.mean.shape[-2:]
    if isinstance(joint, GaussianOverInputs):
        return jnp.eye(N, dtype=joint.mean.dtype)
    return jnp.eye(N * P, dtype=joint.mean.dtype).reshape(N, P, N, P)
