"""The top layer, integrated out or sampled: its likelihood given the hidden layers, and what it predicts."""

import abc

import equinox as eqx
import jax.numpy as jnp

from ..likelihoods import AbstractLikelihood
from ..linalg import matmul, safe_cholesky, safe_inverse_cholesky, solve_lower
from ..typing import Array, Float, Int, Scalar
from ._bound import LOG_2PI, factorise, sparse_log_likelihood, whitened_cross
from ._covariance import AbstractCovariance
from ._hidden import Variables


class TopPosterior(eqx.Module):
    """The Gaussian of f given one particle: mean k(x, known) w, variance k(x, x) − |k R₁|² + |k R₂|²."""

    known: Float[Array, "K E"]
    weights: Float[Array, "K P"]
    prior_root: Float[Array, "K K"]
    posterior_root: Float[Array, "K K"] | None
    """None for the exact posterior, where the last term is part of the one before."""

    def predict(self, covariance: AbstractCovariance, features: Float[Array, "N E"]):
        """Mean [N, P] and variance [N] at these features."""
        cross = covariance(features, self.known)
        variance = covariance.variance - jnp.sum(matmul(cross, self.prior_root) ** 2, axis=1)
        if self.posterior_root is not None:
            variance = variance + jnp.sum(matmul(cross, self.posterior_root) ** 2, axis=1)
        return matmul(cross, self.weights), jnp.maximum(variance, 0.0)


class AbstractTop(eqx.Module):
    """How y depends on the features of the top layer."""

    inducing: eqx.AbstractVar[Int[Array, " M"] | None]

    @abc.abstractmethod
    def split(self, whitened: Variables) -> tuple["AbstractTop", Variables]:
        """The top layer given its own part of a particle's variables, and the part of the hidden layers."""

    @abc.abstractmethod
    def log_likelihood(
        self, covariance: AbstractCovariance, features: Float[Array, "N E"], y: Float[Array, "N P"], noise: Scalar
    ) -> Scalar:
        """log p(y | hidden layers)."""

    @abc.abstractmethod
    def condition(
        self, covariance: AbstractCovariance, features: Float[Array, "N E"], y: Float[Array, "N P"], noise: Scalar
    ) -> TopPosterior:
        """The posterior of the top layer given the hidden ones."""


class SparseTop(AbstractTop):
    """A sparse GP with these rows as inducing points."""

    inducing: Int[Array, " M"]

    def split(self, whitened):
        return self, whitened

    def log_likelihood(self, covariance, features, y, noise):
        wide = whitened_cross(covariance, features, self.inducing)[1]
        return sparse_log_likelihood(wide, y, noise)

    def condition(self, covariance, features, y, noise):
        """μ = γ⁻² k_m Σ⁻¹ K_mn y, k − k_m K_mm⁻¹ k_m + k_m Σ⁻¹ k_m, Σ = K_mm + K_mn K_nm/γ² [STRIDE, section 2.3]."""
        factors = factorise(covariance, features, self.inducing, y, noise)
        posterior_root = solve_lower(factors.root, factors.inverse_root)
        return TopPosterior(
            known=features[self.inducing],
            weights=matmul(posterior_root.T, factors.projected),
            prior_root=factors.inverse_root.T,
            posterior_root=posterior_root.T,
        )


class ExactTop(AbstractTop):
    """A GP without inducing points, O(N³): the standard deep GP."""

    inducing: None = None

    def split(self, whitened):
        return self, whitened

    def log_likelihood(self, covariance, features, y, noise):
        root = safe_cholesky(_with_noise(covariance, features, noise), jitter=0.0).factor
        log_determinant = 2.0 * jnp.sum(jnp.log(jnp.diagonal(root)))
        misfit = jnp.sum(solve_lower(root, y) ** 2)
        return -0.5 * (y.shape[1] * (y.shape[0] * LOG_2PI + log_determinant) + misfit)

    def condition(self, covariance, features, y, noise):
        """[STRIDE, eq. 1]."""
        inverse_root = safe_inverse_cholesky(_with_noise(covariance, features, noise), jitter=0.0).inverse
        return TopPosterior(features, matmul(inverse_root.T, matmul(inverse_root, y)), inverse_root.T, None)


class SampledTop(AbstractTop):
    """A sparse GP under any likelihood: f = K_nm L⁻ᵀ v, with whitened values v that are sampled like a hidden layer.

    With Gaussian noise it is SparseTop before its values are integrated out, at more variables to sample.
    """

    inducing: Int[Array, " M"]
    likelihood: AbstractLikelihood
    variables: Float[Array, "M Q"] | None = None
    """Those of one particle; None until `split` has told which."""

    def split(self, whitened):
        return SampledTop(self.inducing, self.likelihood, whitened[-1]), whitened[:-1]

    def log_likelihood(self, covariance, features, y, noise):
        posterior = self.condition(covariance, features, y, noise)
        f = matmul(covariance(features, posterior.known), posterior.weights)
        return jnp.sum(self.likelihood.log_prob(f, y))

    def condition(self, covariance, features, y, noise):
        """Given v, what f is elsewhere: k_m L⁻ᵀ v, k − |k_m L⁻ᵀ|²."""
        assert self.variables is not None  # noqa: S101
        known = features[self.inducing]
        prior_root = safe_inverse_cholesky(covariance(known, known)).inverse.T
        return TopPosterior(known, matmul(prior_root, self.variables), prior_root, None)


def _with_noise(covariance: AbstractCovariance, features: Float[Array, "N E"], noise: Scalar) -> Float[Array, "N N"]:
    return covariance(features, features) + noise * jnp.eye(features.shape[0], dtype=features.dtype)
