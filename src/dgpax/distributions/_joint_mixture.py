"""Mixtures of joint Gaussians: what joint predictions behind inner layers, or of several fits, are."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import logsumexp

from ..errors import InputError
from ..typing import Array, ArrayLike, Float, RandomKey
from ._gaussian import Gaussian
from ._joint import AbstractJointGaussian
from ._mixture import Mixture


class JointMixture(eqx.Module):
    """Σ_s weight_s · component_s, one component for all entries; weights as those of `Mixture`."""

    components: AbstractJointGaussian
    log_weights: Float[Array, " S"] | None = None

    def __check_init__(self):
        if self.components.mean.ndim < 3:
            raise InputError(f"JointMixture needs components [S, N, P]; got {self.components.mean.shape}.")

    def marginal(self) -> Mixture:
        """Each entry alone."""
        return Mixture(Gaussian(self.components.mean, self.components.variance), self.log_weights)

    @property
    def mean(self) -> Float[Array, "*batch N P"]:
        return self.marginal().mean

    @property
    def variance(self) -> Float[Array, "*batch N P"]:
        return self.marginal().variance

    @property
    def stddev(self) -> Float[Array, "*batch N P"]:
        return self.marginal().stddev

    def log_prob(self, y: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        """Joint log density, log Σ_s weight_s p_s(y)."""
        terms = self.components.log_prob(y)
        log_weights = jnp.log(self.marginal().weights)
        return logsumexp(log_weights.reshape(-1, *([1] * (terms.ndim - 1))) + terms, axis=0)

    def sample(self, key: RandomKey, num_samples: int) -> Float[Array, "num_samples *batch N P"]:
        """Draw a component for all entries, then draw from it."""
        key_component, key_value = jr.split(key)
        index = jr.categorical(key_component, jnp.log(self.marginal().weights), shape=(num_samples,))
        return jax.tree.map(lambda leaf: leaf[index], self.components).sample(key_value, 1)[0]

    def affine(self, shift: Float[ArrayLike, "..."], scale: Float[ArrayLike, "..."]) -> JointMixture:
        """The distribution of shift + scale · Y."""
        return JointMixture(self.components.affine(shift, scale), self.log_weights)
