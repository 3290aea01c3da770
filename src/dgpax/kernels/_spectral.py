"""Spectral densities and draws of frequencies, for Fourier features and pathwise samples.

The convention is k(τ) = (2π)⁻ᴰ ∫ S(ω) exp(i ω·τ) dω.
"""

from __future__ import annotations

from functools import singledispatch

import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import gammaln

from ..errors import MissingRuleError
from ..parameters import AbstractParameter
from ..typing import Array, Float, RandomKey
from ._algebra import Scaled
from ._base import AbstractKernel
from ._periodic import Cosine
from ._stationary import RBF, Matern12, Matern32, Matern52, RationalQuadratic

SMOOTHNESS = {Matern12: 0.5, Matern32: 1.5, Matern52: 2.5}
"""ν."""


def _missing(question: str, kernel, known) -> MissingRuleError:
    names = ", ".join(sorted(kind.__name__ for kind in known if kind is not object))
    return MissingRuleError(
        f"{type(kernel).__name__} has no {question}. Kernels that have one: {names}. "
        f"Use one of these, or add a rule with @{question.replace(' ', '_')}.register({type(kernel).__name__})."
    )


@singledispatch
def spectral_density(kernel: AbstractKernel, frequencies: Float[Array, "*b D"]) -> Float[Array, "*b"]:
    """S(ω) at angular frequencies [..., D]."""
    raise _missing("spectral density", kernel, spectral_density.registry)


@singledispatch
def sample_frequencies(
    kernel: AbstractKernel, key: RandomKey, num_frequencies: int, num_inputs: int
) -> Float[Array, "F D"]:
    """Angular frequencies drawn from the density S(ω)/(∫S) of a kernel without batch axes."""
    raise _missing("sample frequencies", kernel, sample_frequencies.registry)


def _per_column(lengthscale: AbstractParameter, num_inputs: int) -> Float[Array, " D"]:
    return jnp.broadcast_to(lengthscale.value, (num_inputs,))


@spectral_density.register
def _(kernel: RBF, frequencies):
    """σ² Π_d √(2π) ℓ_d exp(−ω_d²ℓ_d²/2) [Rasmussen & Williams 2006, p. 83]."""
    scale = _per_column(kernel.lengthscale, frequencies.shape[-1])
    normaliser = (2.0 * jnp.pi) ** (scale.size / 2) * jnp.prod(scale)
    return kernel.variance.value * normaliser * jnp.exp(-0.5 * jnp.sum((frequencies * scale) ** 2, axis=-1))


@spectral_density.register
def _(kernel: Matern12 | Matern32 | Matern52, frequencies):
    """[Rasmussen & Williams 2006, eq. 4.15] at ω = 2πs, with a length scale per column."""
    scale, nu = _per_column(kernel.lengthscale, frequencies.shape[-1]), SMOOTHNESS[type(kernel)]
    D = scale.size
    log_normaliser = (
        D * jnp.log(2.0)
        + 0.5 * D * jnp.log(jnp.pi)
        + gammaln(nu + D / 2)
        - gammaln(nu)
        + nu * jnp.log(2.0 * nu)
        + jnp.sum(jnp.log(scale))
    )
    power = (nu + D / 2) * jnp.log(2.0 * nu + jnp.sum((frequencies * scale) ** 2, axis=-1))
    return kernel.variance.value * jnp.exp(log_normaliser - power).astype(frequencies.dtype)


@spectral_density.register
def _(kernel: Scaled, frequencies):
    return kernel.factor * spectral_density(kernel.kernel, frequencies)


def _scale_mixture(kernel, key, num_frequencies, num_inputs, concentration):
    """ω = z √τ / ℓ with z normal and the precision τ such that the kernel is a scale mixture of RBFs."""
    key_normal, key_mixing = jr.split(key)
    dtype = kernel.lengthscale.dtype
    z = jr.normal(key_normal, (num_frequencies, num_inputs), dtype)
    gamma = jr.gamma(key_mixing, jnp.asarray(concentration, dtype), (num_frequencies, 1), dtype)
    return z / _per_column(kernel.lengthscale, num_inputs), gamma / concentration


@sample_frequencies.register
def _(kernel: RBF, key, num_frequencies, num_inputs):
    z = jr.normal(key, (num_frequencies, num_inputs), kernel.lengthscale.dtype)
    return z / _per_column(kernel.lengthscale, num_inputs)


@sample_frequencies.register
def _(kernel: Matern12 | Matern32 | Matern52, key, num_frequencies, num_inputs):
    """A multivariate t with 2ν degrees of freedom [Rasmussen & Williams 2006, eq. 4.15]."""
    normal, mixing = _scale_mixture(kernel, key, num_frequencies, num_inputs, SMOOTHNESS[type(kernel)])
    return normal / jnp.sqrt(mixing)


@sample_frequencies.register
def _(kernel: RationalQuadratic, key, num_frequencies, num_inputs):
    """A gamma mixture of RBF precisions with shape α and mean 1 [Rasmussen & Williams 2006, eq. 4.20]."""
    normal, mixing = _scale_mixture(kernel, key, num_frequencies, num_inputs, kernel.alpha.value)
    return normal * jnp.sqrt(mixing)


@sample_frequencies.register
def _(kernel: Cosine, key, num_frequencies, num_inputs):
    """One frequency with either sign."""
    sign = jr.rademacher(key, (num_frequencies, 1), kernel.lengthscale.dtype)
    return sign * 2.0 * jnp.pi / _per_column(kernel.lengthscale, num_inputs)


@sample_frequencies.register
def _(kernel: Scaled, key, num_frequencies, num_inputs):
    return sample_frequencies(kernel.kernel, key, num_frequencies, num_inputs)
