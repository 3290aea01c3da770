"""Gaussian noise that is correlated between outputs."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from numpy.typing import ArrayLike

from ..distributions import Gaussian, GaussianOverOutputs
from ..errors import InputError
from ..linalg import einsum, matmul, safe_cholesky, solve_cholesky
from ..parameters import AbstractParameter, as_lower_triangular
from ..typing import Array, Float, RandomKey
from ._base import AbstractLikelihood, AnyGaussian
from ._multivariate import log_normal_together, observed_block, pairs
from ._support import REAL, check_support


class CorrelatedGaussianNoise(AbstractLikelihood):
    """y = f + N(0, Σ) with Σ = root rootᵀ between the P outputs   [van der Wilk et al. 2020, eq. (42)].

    Missing outputs leave the sub-blocks of the observed ones, their eq. (46).
    """

    root: AbstractParameter = eqx.field(converter=as_lower_triangular)

    @property
    def covariance(self) -> Float[Array, "P P"]:
        """Σ."""
        root = self.root.value
        return matmul(root, root.T)

    def num_latents(self, num_outputs: int) -> int:
        if num_outputs != self.root.shape[0]:
            raise InputError(
                f"CorrelatedGaussianNoise has a root for {self.root.shape[0]} outputs; the targets have {num_outputs}. "
                f"Pass a root of shape ({num_outputs}, {num_outputs})."
            )
        return num_outputs

    def log_prob(self, f: Float[Array, "*batch N P"], y: Float[Array, "*#batch N P"]) -> Float[Array, "*batch N"]:
        return log_normal_together(f, self.covariance, y)

    def for_expectation(self, outputs) -> AnyGaussian:
        return outputs.by_row()

    def expected_log_prob(self, q: AnyGaussian, y: Float[Array, "*#batch N P"]) -> Float[Array, "*batch N"]:
        """log N(y; mean, Σ) − ½ tr(Σ⁻¹ V), V the covariance of q, both for the observed outputs only."""
        observed = ~jnp.isnan(y)
        factor = safe_cholesky(observed_block(self.covariance, observed), jitter=0.0).factor
        precision = solve_cholesky(factor, jnp.eye(y.shape[-1], dtype=factor.dtype))
        V = jnp.where(pairs(observed), GaussianOverOutputs.of(q).covariance, 0.0)
        return log_normal_together(q.mean, self.covariance, y) - 0.5 * jnp.sum(precision * V, axis=(-2, -1))

    def predictive_log_prob(self, q: AnyGaussian, y: Float[Array, "*#batch N P"]) -> Float[Array, "*batch N"]:
        """log N(y; mean, Σ + V)."""
        return log_normal_together(q.mean, self.covariance + GaussianOverOutputs.of(q).covariance, y)

    def conditional_mean(self, f: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        return f

    def conditional_variance(self, f: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        return jnp.broadcast_to(jnp.diagonal(self.covariance), f.shape)

    def predictive_mean(self, q: AnyGaussian) -> Float[Array, "*batch N P"]:
        return q.mean

    def predictive_variance(self, q: AnyGaussian) -> Float[Array, "*batch N P"]:
        return q.variance + jnp.diagonal(self.covariance)

    def components(self, q: AnyGaussian) -> Gaussian:
        return Gaussian(q.mean, self.predictive_variance(q))

    def sample(self, key: RandomKey, f: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        return f + einsum("ij,...j->...i", self.root.value, jr.normal(key, f.shape, f.dtype))

    def check_targets(self, y: ArrayLike) -> None:
        check_support(y, REAL, type(self).__name__)
