"""The top layer, integrated out or sampled: its likelihood given the hidden layers, and what it predicts."""

import abc

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from ..likelihoods import AbstractLikelihood
from ..linalg import matmul, safe_cholesky, safe_inverse_cholesky, solve_lower
from ..typing import Array, Float, Int, RandomKey, Scalar
from ._bound import LOG_2PI, factorise, sparse_log_likelihood, whitened_cross
from ._covariance import AbstractCovariance
from ._hidden import Variables
from ._spread import random_function


class TopPosterior(eqx.Module):
    """The Gaussian of f given one particle: mean k(x, known) w, covariance k(x, x′) − ⟨kR₁, k′R₁⟩ + ⟨kR₂, k′R₂⟩."""

    known: Float[Array, "K E"]
    weights: Float[Array, "K P"]
    prior_root: Float[Array, "K K"]
    posterior_root: Float[Array, "K K"] | None
    """None where w is all that is known, or R₁R₁ᵀ is the inverse of k(known, known) with the noise added."""
    noise_variance: Scalar
    """The noise that R₁ has in it."""
    jitter: Scalar

    def moments(self, covariance: AbstractCovariance, features: Float[Array, "N E"]):
        """Mean [N, P] and variance [N] at these features; rounding may leave a variance below zero."""
        cross = covariance(features, self.known)
        variance = covariance.variance - jnp.sum(matmul(cross, self.prior_root) ** 2, axis=1)
        if self.posterior_root is not None:
            variance = variance + jnp.sum(matmul(cross, self.posterior_root) ** 2, axis=1)
        return matmul(cross, self.weights), variance

    def predict(self, covariance: AbstractCovariance, features: Float[Array, "N E"]):
        """Mean [N, P] and variance [N] at these features."""
        mean, variance = self.moments(covariance, features)
        return mean, jnp.maximum(variance, 0.0)

    def predict_jointly(self, covariance: AbstractCovariance, features: Float[Array, "N E"]):
        """Mean [N, P] and covariance [N, N] at these features."""
        cross = covariance(features, self.known)
        prior = matmul(cross, self.prior_root)
        joint = covariance(features, features) - matmul(prior, prior.T)
        if self.posterior_root is not None:
            posterior = matmul(cross, self.posterior_root)
            joint = joint + matmul(posterior, posterior.T)
        return matmul(cross, self.weights), joint

    def draw_function(
        self, covariance: AbstractCovariance, features: Float[Array, "N E"], key: RandomKey, num_features: int
    ) -> Float[Array, "N P"]:
        """φ(x) + k(x, known)(w + R₂ε − R₁R₁ᵀ(φ(known) + noise)) with a function φ of the prior: the same for a key."""
        key_prior, key_noise, key_values = jr.split(key, 3)
        shape, dtype = self.weights.shape, self.weights.dtype
        phi = random_function(covariance, key_prior, shape[1], num_features, self.known)
        values = phi(self.known) + jnp.sqrt(self.noise_variance) * jr.normal(key_noise, shape, dtype)
        weights = self.weights - matmul(self.prior_root, matmul(self.prior_root.T, values))
        if self.posterior_root is not None:
            weights = weights + matmul(self.posterior_root, jr.normal(key_values, shape, dtype))
        return phi(features) + matmul(covariance(features, self.known), weights)


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
        wide = whitened_cross(covariance, features, self.inducing).wide
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
            noise_variance=jnp.zeros_like(noise),
            jitter=factors.jitter,
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
        inverse_root, jitter, _ = safe_inverse_cholesky(_with_noise(covariance, features, noise), jitter=0.0)
        weights = matmul(inverse_root.T, matmul(inverse_root, y))
        return TopPosterior(features, weights, inverse_root.T, None, jnp.asarray(noise), jitter)


class SampledTop(AbstractTop):
    """A sparse GP under any likelihood: f = K_nm L⁻ᵀ v, with whitened values v that are sampled like a hidden layer.

    With Gaussian noise it is SparseTop before its values are integrated out, at more variables to sample.
    """

    inducing: Int[Array, " M"]
    likelihood: AbstractLikelihood
    variables: Float[Array, "M Q"] | None = None
    """Those of one particle; None until `split` says which."""

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
        inverse_root, jitter, _ = safe_inverse_cholesky(covariance(known, known))
        weights = matmul(inverse_root.T, self.variables)
        return TopPosterior(known, weights, inverse_root.T, None, jnp.zeros_like(noise), jitter)


def _with_noise(covariance: AbstractCovariance, features: Float[Array, "N E"], noise: Scalar) -> Float[Array, "N N"]:
    return covariance(features, features) + noise * jnp.eye(features.shape[0], dtype=features.dtype)
