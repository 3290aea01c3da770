"""Draws of whole functions, which can be evaluated anywhere and later."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from ..covariances import IndependentProcesses, Kuf
from ..data import check_inputs
from ..errors import InputError
from ..inducing import AbstractInducing, Points
from ..kernels import AbstractKernel, Sum, White, sample_frequencies
from ..layers import GPLayer, gp_layers, refuse_latents
from ..linalg import einsum, matmul
from ..means import AbstractMean
from ..model import DeepGP
from ..posteriors import AbstractCarry, AbstractLayerwise, AbstractPosterior, ExactPosterior, noise_variances
from ..programs import compiled
from ..propagate import walk
from ..typing import Array, Float, RandomKey


class PriorDraws(eqx.Module):
    """Functions of a stationary prior by random Fourier features: Σ_f cos(ω_f·x) a_f + sin(ω_f·x) b_f."""

    frequencies: Float[Array, "Q F D"]
    weights: Float[Array, "S P G"]

    @classmethod
    def of(cls, kernel: AbstractKernel, key: RandomKey, num_draws: int, num_processes: int, z, num_features: int):
        """One function per draw and process; the processes share the kernel or have one each."""
        key_frequencies, key_weights = jr.split(key)
        variance = kernel.diag(z[None, :1])
        if len(variance) == 1:
            frequencies = sample_frequencies(kernel, key_frequencies, num_features, z.shape[-1])[None]
        else:
            draw = eqx.filter_vmap(lambda k, own_key: sample_frequencies(k, own_key, num_features, z.shape[-1]))
            frequencies = draw(kernel, jr.split(key_frequencies, len(variance)))
        weights = jr.normal(key_weights, (num_draws, num_processes, 2 * num_features), z.dtype)
        return cls(frequencies, weights * jnp.sqrt(variance / num_features))

    def __call__(self, x: Float[Array, "*b N D"]) -> Float[Array, "S P N"]:
        angles = einsum("...nd,qfd->...qnf", x, self.frequencies)
        features = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=-1)
        return matmul(features, self.weights[..., None])[..., 0]


def _sum(parts: tuple[PriorDraws, ...], x: Float[Array, "*b N D"]) -> Float[Array, "S P N"]:
    return jnp.sum(jnp.stack([part(x) for part in parts]), axis=0)


class LayerFunctions(eqx.Module):
    """Functions of a layer: those of the prior, moved so that they pass through draws of the inducing outputs.

    f(x) = φ(x) + Kxu Kuu⁻¹ (u − φ(Z)) [Wilson et al. 2020, eq. 13].
    """

    prior: tuple[PriorDraws, ...]
    coefficients: Float[Array, "S P M"]
    kernel: AbstractKernel
    inducing: AbstractInducing
    mean: AbstractMean
    mixing: Float[Array, "R P"] | None

    def __call__(self, x: Float[Array, "*b N D"]) -> Float[Array, "S N R"]:
        Kfu = Kuf(self.inducing, self.kernel, x[..., None, :, :]).mT
        f = matmul(Kfu, self.coefficients[..., None])[..., 0].mT + _sum(self.prior, x).mT
        return (f if self.mixing is None else matmul(f, self.mixing.T)) + self.mean(x)


class FunctionDraws(eqx.Module):
    """Functions drawn from the posterior: call it with inputs in raw units, as often as you like.

    The same input gives the same values every time. Noise between layers isn't part of a function and is left out.
    """

    functions: dict[int, LayerFunctions]
    model: DeepGP
    num_inputs: int = eqx.field(static=True)
    input_names: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, x) -> Float[Array, "S N P"]:
        checked = check_inputs(x, self.num_inputs, self.input_names)
        values = _evaluate(self.functions, self.model, self.model.inputs_to_model_units(checked))
        return values if self.model.scaling is None else self.model.scaling.invert_outputs(values)


@compiled
def _evaluate(functions: dict[int, LayerFunctions], model: DeepGP, x: Float[Array, "N D"]) -> Float[Array, "S N P"]:
    given, _ = walk(model.layers, x, lambda index, random, inputs, state: (functions[index](inputs), state), None)
    return given.last


def layer_functions(
    model: DeepGP, posterior: AbstractPosterior, num_draws: int, num_features: int, seed: int
) -> dict[int, LayerFunctions]:
    """A draw of every GP of the model as a function; the prior by `num_features` random frequencies."""
    refuse_latents(model.layers, "draw_functions()")
    key, *keys = jr.split(jr.key(seed), 1 + len(model.layers))
    drawn = posterior.layerwise(key, (num_draws,))
    carry = drawn.begin(model.layers)
    return {
        index: _draw_layer(index, layer, model, drawn, carry, keys[index], num_draws, num_features)
        for index, layer in gp_layers(model.layers).items()
    }


def _draw_layer(
    index: int,
    layer: GPLayer,
    model: DeepGP,
    posterior: AbstractLayerwise,
    carry: AbstractCarry,
    key: RandomKey,
    num_draws: int,
    num_features: int,
) -> LayerFunctions:
    processes, inducing = layer.processes(), posterior.inducing(index, layer, carry)
    independent = isinstance(processes, IndependentProcesses)
    if not independent or not isinstance(inducing, Points) or inducing.locations.value.ndim != 2:
        raise InputError(
            "draw_functions() needs inducing points that all outputs share, and independent or linearly mixed outputs; "
            f"layer {index} has {type(inducing).__name__} and {type(layer.kernel).__name__}. Use sample_jointly()."
        )
    key_prior, key_noise, key_outputs = jr.split(key, 3)
    smooth, noise = _split_noise(processes.kernel)
    if isinstance(posterior, ExactPosterior):
        noise = noise + noise_variances(model)[:, None]
    z, num_processes = inducing.locations.value, layer.num_blocks
    prior = tuple(
        PriorDraws.of(part, own_key, num_draws, num_processes, z, num_features)
        for part, own_key in zip(smooth, jr.split(key_prior, len(smooth)), strict=True)
    )
    values = _sum(prior, z)
    values = values + jnp.sqrt(noise) * jr.normal(key_noise, values.shape, z.dtype)
    moments = posterior.moments(index, jnp.eye(len(z), dtype=z.dtype)[None], carry)
    spread = jr.normal(key_outputs, (num_draws, *moments.spread.shape[-3:-2], moments.spread.shape[-1]), z.dtype)
    whitened = moments.mean + matmul(moments.spread, spread[..., None])[..., 0]
    root = carry.root(index)
    rest = root.solve(root.matmul(whitened[..., None]) - values[..., None])
    return LayerFunctions(
        prior, root.solve_transposed(rest)[..., 0], processes.kernel, inducing, layer.mean, processes.mixing
    )


def _split_noise(kernel: AbstractKernel) -> tuple[list[AbstractKernel], Float[Array, "..."] | float]:
    """The smooth terms of a sum, and the variance of its white noise."""
    terms = kernel.kernels if isinstance(kernel, Sum) else (kernel,)
    noise = sum((term.variance.value[..., None] for term in terms if isinstance(term, White)), 0.0)
    return [term for term in terms if not isinstance(term, White)], noise
