"""Finite mixtures: what prediction with samples, particles or chains returns."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax
from jax.scipy.special import logsumexp

from ..errors import InputError
from ..linalg import einsum
from ..programs import compiled
from ..typing import Array, ArrayLike, Float, RandomKey
from ._base import AbstractDistribution, as_probability
from ._root import invert_cdf


class Mixture(AbstractDistribution):
    """Σ_s weight_s · component_s.

    `components` is one distribution whose every array has a leading axis S, for example a `Gaussian` of shape
    [S, N, P]. `log_weights` needs no normalisation; None means equal weights.

    >>> import jax.numpy as jnp
    >>> from dgpax.distributions import Gaussian, Mixture
    >>> components = Gaussian(jnp.asarray([-1.0, 1.0]).reshape(2, 1, 1), jnp.full((2, 1, 1), 0.25))
    >>> p = Mixture(components)
    >>> float(p.mean[0, 0]), float(p.variance[0, 0])
    (0.0, 1.25)
    """

    components: AbstractDistribution
    log_weights: Float[Array, " S"] | None

    def __init__(self, components: AbstractDistribution, log_weights: Float[Array, "..."] | None = None):
        shape = components.mean.shape
        if len(shape) < 3 or shape[0] == 0:
            raise InputError(f"Mixture needs components of shape [S, *batch, N, P] with S ≥ 1; got {shape}.")
        if log_weights is not None and log_weights.shape != shape[:1]:
            raise InputError(f"Mixture needs one log weight per component, shape {shape[:1]}; got {log_weights.shape}.")
        self.components = components
        self.log_weights = log_weights

    @property
    def weights(self) -> Float[Array, " S"]:
        """The normalised weights."""
        return jax.nn.softmax(self._log_weights)

    @property
    def mean(self) -> Float[Array, "*batch N P"]:
        return self._average(self.components.mean)

    @property
    def variance(self) -> Float[Array, "*batch N P"]:
        """Law of total variance: the mean of the variances plus the variance of the means."""
        return self._average(self.components.variance + (self.components.mean - self.mean) ** 2)

    def cdf(self, y: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        average = self._average(self._each(lambda component: component.cdf(y)))
        return jnp.minimum(average, 1.0)

    def log_prob(self, y: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        """log Σ_s weight_s p_s(y)."""
        terms = self._each(lambda component: component.log_prob(y))
        return logsumexp(_along_first(self._log_weights, terms) + terms, axis=0)

    def quantile(self, p: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        """The root of cdf(y) = p, which lies between the smallest and the largest quantile of the components."""
        return _quantile(self, as_probability(p, self.components.mean.dtype))

    def expected_distance(self, y: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        return self._average(self._each(lambda component: component.expected_distance(y)))

    def expected_difference(self, other: Mixture) -> Float[Array, "..."]:
        """Σ_i Σ_j w_i w′_j E|Y_i − Y′_j|, the second term of Grimit et al. 2006, eq. (5).

        One component at a time against all others: S² terms per entry, memory for S of them, also in reverse mode.
        """
        return _expected_difference(self, other)

    def sample(self, key: RandomKey, num_samples: int) -> Float[Array, "num_samples *batch N P"]:
        """Draw a component, one for all of [*batch, N, P], then draw from it."""
        key_component, key_value = jr.split(key)
        index = jr.categorical(key_component, self._log_weights, shape=(num_samples,))
        chosen = jax.tree.map(lambda leaf: leaf[index], self.components)
        return chosen.sample(key_value, 1)[0]

    def affine(self, shift: Float[ArrayLike, "..."], scale: Float[ArrayLike, "..."]) -> Mixture:
        return Mixture(self.components.affine(shift, scale), self.log_weights)

    @property
    def _log_weights(self) -> Float[Array, " S"]:
        if self.log_weights is None:
            size, dtype = self.components.mean.shape[0], self.components.mean.dtype
            return jnp.full((size,), -math.log(size), dtype)
        return jax.nn.log_softmax(self.log_weights.astype(self.components.mean.dtype))

    def _each(self, function: Callable[[AbstractDistribution], Float[Array, "*shape"]]) -> Float[Array, "S *shape"]:
        return jax.vmap(function)(self.components)

    def _average(self, values: Float[Array, "S *shape"]) -> Float[Array, "*shape"]:
        return einsum("s,s...->...", self.weights, values)


@jax.custom_jvp
@compiled
def _quantile(mixture: Mixture, p: Float[Array, "..."]) -> Float[Array, "..."]:
    quantiles = mixture._each(lambda component: component.quantile(p))
    weights = _along_first(mixture.weights, quantiles)
    low = jnp.min(jnp.where(weights > 0, quantiles, jnp.inf), axis=0)
    high = jnp.max(jnp.where(weights > 0, quantiles, -jnp.inf), axis=0)
    p = jnp.broadcast_to(p, low.shape)
    inner = (p > 0) & (p < 1)
    root = invert_cdf(
        lambda y: (mixture.cdf(y), jnp.exp(mixture.log_prob(y))),
        jnp.where(inner, p, 0.5),
        jnp.where(inner, mixture._average(quantiles), 0.0),
        jnp.where(inner, low, 0.0),
        jnp.where(inner, high, 0.0),
    )
    return jnp.where(inner, root, jnp.where(p <= 0, low, high))


@_quantile.defjvp
def _quantile_jvp(primals, tangents):
    """That of the implicit function: ∂y = (∂p − ∂cdf)/density; 0 where the density underflows."""
    (mixture, p), (mixture_moves, p_moves) = primals, tangents
    root = _quantile(mixture, p)
    _, cdf_moves = jax.jvp(lambda moving: moving.cdf(root), (mixture,), (mixture_moves,))
    density = jnp.exp(mixture.log_prob(root))
    supported = (density > float(jnp.finfo(density.dtype).tiny)) & jnp.isfinite(density)
    return root, jnp.where(supported, (p_moves - cdf_moves) / jnp.where(supported, density, 1.0), 0.0)


@compiled
def _expected_difference(mixture: Mixture, other: Mixture) -> Float[Array, "..."]:
    @jax.checkpoint
    def add(total, weighted):
        weight, component = weighted
        return total + weight * other._average(other._each(component.expected_difference)), None

    start = jnp.zeros_like(mixture.mean + other.mean)
    total, _ = lax.scan(add, start, (mixture.weights, mixture.components))
    return total


def _along_first(weights: Float[Array, " S"], values: Float[Array, "S *shape"]) -> Float[Array, "S *ones"]:
    return weights.reshape(-1, *([1] * (values.ndim - 1)))
