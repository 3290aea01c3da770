"""Where a run teaches most about the whole box."""

from __future__ import annotations

import jax.numpy as jnp

from ..linalg import matmul
from ._base import AbstractCriterion
from ._beliefs import LEAST_SHARE


class ALC(AbstractCriterion):
    """By how much a run lowers the variance of f, averaged over the box: active learning Cohn [Cohn 1994; Sauer,
    Gramacy & Higdon 2023].

    Cov(f(z), f(x))²/(Var f(x) + noise), on average over z: exact where f is Gaussian; of a mixture, what the best
    linear prediction gains.
    """

    def scores(self, beliefs, x):
        G = len(beliefs.references)
        covariance = beliefs.left_open(jnp.concatenate([beliefs.references, x]))
        variance = jnp.maximum(jnp.diagonal(covariance, axis1=1, axis2=2)[:, G:], 0.0)
        least = LEAST_SHARE * jnp.mean(jnp.diagonal(covariance, axis1=1, axis2=2)[:, :G], axis=1)
        gain = jnp.mean(covariance[:, :G, G:] ** 2, axis=1) / (variance + (beliefs.noise + least)[:, None])
        return matmul(beliefs.output_weights, gain)

    def relative(self, worth, spread):
        return max(worth, 0.0) ** 0.5 / spread
