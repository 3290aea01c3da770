"""Why independent layers collapse: the variance that noise in a layer's inputs adds to its outputs."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..fits import AbstractFit, with_posterior
from ..inducing import Points
from ..kernels import AbstractKernel
from ..layers import GPLayer, gp_layers
from ..posteriors import AbstractCarry, AbstractPosterior, Particles, PointsAsLocations
from ..programs import compiled
from ..propagate import outputs_of
from ..typing import Array, ArrayLike, Float


class NoisyInputVariance(NamedTuple):
    """Var f(x + ε) ≈ variance + Σ_d Var ε_d · (slope_d + curvature_d), for every output [N, P]."""

    variance: Float[Array, "N P"]
    slope: Float[Array, "N P D"]
    curvature: Float[Array, "N P D"]

    def total(self, input_variance: float | Float[Array, "..."]) -> Float[Array, "N P"]:
        """For noise of this variance, one number or one per column."""
        return self.variance + jnp.sum(jnp.asarray(input_variance) * (self.slope + self.curvature), axis=-1)


def noisy_input_variance(fitted: AbstractFit, x, *, layer: int = 0) -> NoisyInputVariance:
    """How a layer's variance answers to noise in its inputs, to second order [CU, eq. 11].

    With mean μ(x) and variance σ²(x), Var f(x + ε) = E σ²(x + ε) + Var μ(x + ε) ≈ σ² + Var ε · (μ'² + ½ (σ²)''). The
    paper prints (σ²)'' without the factor ½; its own exact example (appendix A) has it. `slope` is μ'², `curvature`
    ½ (σ²)''. Where inducing points cover the inputs the curvature is hardly ever below zero, so that independent
    layers have to give up their variance for a good fit. `x` are inputs of the layer, in the model's units.
    """
    posterior, own = with_posterior(fitted, "noisy_input_variance()").posterior, jnp.asarray(x)
    layers = gp_layers(fitted.model.layers)
    if layer not in layers:
        raise InputError(f"noisy_input_variance(layer={layer}) needs the number of a GP layer.")
    if own.ndim != 2:
        raise InputError(f"noisy_input_variance(x=...) needs inputs of shape (N, D); got {own.shape}.")
    if isinstance(posterior, PointsAsLocations) and layer > 0:
        raise InputError(
            "Under points as locations a layer behind the first has no mean and variance of its own: its inducing "
            "locations are random. Use layer_draws."
        )
    return _answer(layer, layers[layer], posterior, posterior.begin(fitted.model.layers), own)


def curvature_given_points(
    kernel: AbstractKernel, locations: Float[ArrayLike, "M D"], x: Float[ArrayLike, "N D"]
) -> NoisyInputVariance:
    """The same for a process whose values at some points are known to be 0: σ² is k − kᵀK⁻¹k [CU, Figure 3]."""
    layer = GPLayer(kernel, inducing=Points(locations))
    known, at = Particles((jnp.zeros((1, np.shape(locations)[0])),)), jnp.asarray(x)
    return _answer(0, layer, known, known.begin((layer,)), at)


@compiled
def _answer(
    index: int, layer: GPLayer, posterior: AbstractPosterior, carry: AbstractCarry, x: Float[Array, "N D"]
) -> NoisyInputVariance:
    def moments(row):
        q = outputs_of(index, layer, posterior, row[None], carry).over_inputs()
        return q.mean[..., 0, :], q.variance[..., 0, :]

    def at(row):
        slope, _ = jax.jacfwd(moments)(row)
        _, curvature = jax.jacfwd(jax.jacfwd(moments))(row)
        return moments(row)[1], slope**2, 0.5 * jnp.diagonal(curvature, axis1=-2, axis2=-1)

    return NoisyInputVariance(*jax.vmap(at)(x))
