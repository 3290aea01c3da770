"""Gaussian noise that is correlated between outputs."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from numpy.typing import ArrayLike

from ..distributions import Gaussian, GaussianOverOutputs
from ..errors import InputError
from ..linalg import einsum, matmul, safe_cholesky, solve_cholesky, solve_lower
from ..parameters import AbstractParameter, as_lower_triangular
from ..typing import Array, Bool, Float, RandomKey
from ._base import AbstractLikelihood
from ._integrals import LOG_2PI
from ._support import REAL, check_support


class CorrelatedGaussianNoise(AbstractLikelihood):
    """y = f + N(0, Σ) with Σ = root rootᵀ between the P outputs   [van der Wilk et al. 2020, eq. (42)].

    The q(f) it is asked about may have independent outputs (`Gaussian`) or a covariance between them
    (`GaussianOverOutputs`). Missing outputs leave the sub-blocks of the observed ones, their eq. (46).
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
        return _log_normal(f, self.covariance, y)

    def expected_log_prob(
        self, q: Gaussian | GaussianOverOutputs, y: Float[Array, "*#batch N P"]
    ) -> Float[Array, "*batch N"]:
        """log N(y; mean, Σ) − ½ tr(Σ⁻¹ V), V the covariance of q, both for the observed outputs only."""
        observed = ~jnp.isnan(y)
        factor = safe_cholesky(_observed_block(self.covariance, observed), jitter=0.0).factor
        precision = solve_cholesky(factor, jnp.eye(y.shape[-1], dtype=factor.dtype))
        V = jnp.where(_pairs(observed), _covariance(q), 0.0)
        return _log_normal(q.mean, self.covariance, y) - 0.5 * jnp.sum(precision * V, axis=(-2, -1))

    def predictive_log_prob(
        self, q: Gaussian | GaussianOverOutputs, y: Float[Array, "*#batch N P"]
    ) -> Float[Array, "*batch N"]:
        """log N(y; mean, Σ + V)."""
        return _log_normal(q.mean, self.covariance + _covariance(q), y)

    def conditional_mean(self, f: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        return f

    def conditional_variance(self, f: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        return jnp.broadcast_to(jnp.diagonal(self.covariance), f.shape)

    def predictive_mean(self, q: Gaussian | GaussianOverOutputs) -> Float[Array, "*batch N P"]:
        return q.mean

    def predictive_variance(self, q: Gaussian | GaussianOverOutputs) -> Float[Array, "*batch N P"]:
        return q.variance + jnp.diagonal(self.covariance)

    def components(self, q: Gaussian) -> Gaussian:
        return Gaussian(q.mean, self.predictive_variance(q))

    def sample(self, key: RandomKey, f: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        return f + einsum("ij,...j->...i", self.root.value, jr.normal(key, f.shape, f.dtype))

    def encode(self, y: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        return y

    def check_targets(self, y: ArrayLike) -> None:
        check_support(y, REAL, type(self).__name__)


def _covariance(q: Gaussian | GaussianOverOutputs) -> Float[Array, "*batch N P P"]:
    if isinstance(q, GaussianOverOutputs):
        return q.covariance
    return q.variance[..., None] * jnp.eye(q.variance.shape[-1], dtype=q.variance.dtype)


def _pairs(observed: Bool[Array, "*batch N P"]) -> Bool[Array, "*batch N P P"]:
    return observed[..., :, None] & observed[..., None, :]


def _observed_block(
    covariance: Float[Array, "*#batch P P"], observed: Bool[Array, "*#batch P"]
) -> Float[Array, "*batch P P"]:
    """The covariance with rows and columns of missing outputs replaced by those of the identity."""
    return jnp.where(_pairs(observed), covariance, jnp.eye(observed.shape[-1], dtype=covariance.dtype))


def _log_normal(
    mean: Float[Array, "*batch N P"], covariance: Float[Array, "*#covariances P P"], y: Float[Array, "*#batch N P"]
) -> Float[Array, "*batch N"]:
    """log N(y; mean, covariance) of the observed outputs; a missing one enters as a residual 0 of variance 1."""
    observed = ~jnp.isnan(y)
    residual = jnp.where(observed, jnp.where(observed, y, 0.0) - mean, 0.0)
    factor = safe_cholesky(_observed_block(covariance, observed), jitter=0.0).factor
    whitened = solve_lower(factor, residual[..., None])[..., 0]
    log_det = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    return -0.5 * (LOG_2PI * jnp.sum(observed, axis=-1) + jnp.sum(whitened**2, axis=-1)) - log_det
