"""Hidden layers by adaptive cross approximation: a pivoted Cholesky factor in place of the whole one."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from ..errors import InputError
from ..linalg import matmul, safe_inverse_cholesky
from ..typing import Array, Float, Int, Scalar
from ._covariance import AbstractCovariance
from ._gains import new_columns
from ._hidden import AbstractHidden, AbstractHiddenMethod, Prior


class CrossApproximatedHidden(AbstractHidden):
    """u_l = K_nI U⁻¹ ξ_l with K_II = UᵀU, for the same rows I in every layer [STRIDE, Algorithm 3]."""

    rows: Int[Array, " R"]
    factor: Float[Array, "N R"]
    """K_nI U⁻¹ of the first layer."""
    inverse_root: Float[Array, "R R"]
    """U⁻ᵀ of the first layer."""
    relative_error: Float[Array, ""]
    """tr(K − K_nI K_II⁻¹ K_In)/tr(K) of the first layer. What is left is positive semi-definite, so its trace bounds
    every norm of the error: a certificate."""
    jitter: Scalar

    def sites(self):
        return self.rows

    def values(self, prior, whitened):
        values = [matmul(self.factor, whitened[0])]
        for covariance, variables in zip(prior.middle, whitened[1:], strict=True):
            features = prior.features(values[-1])
            weights = matmul(_inverse_root(covariance, features[self.rows]).T, variables)
            values.append(matmul(covariance(features, features[self.rows]), weights))
        return tuple(values)

    def whiten(self, prior, values):
        """ξ = U⁻ᵀu(I): the values at the rows I stay, whatever I was before."""
        whitened = [matmul(self.inverse_root, values[0][self.rows])]
        approximated = matmul(self.factor, whitened[0])
        for covariance, u in zip(prior.middle, values[1:], strict=True):
            features = prior.features(approximated)
            inverse = _inverse_root(covariance, features[self.rows])
            whitened.append(matmul(inverse, u[self.rows]))
            approximated = matmul(covariance(features, features[self.rows]), matmul(inverse.T, whitened[-1]))
        return tuple(whitened)

    def at(self, prior, whitened, x, spread):
        """k(x, I) U⁻¹ ξ: the approximated layers are functions of the whitened variables, with nothing left to draw."""
        values = self.values(prior, whitened)
        u = matmul(prior.bottom(x, prior.x[self.rows]), matmul(self.inverse_root.T, whitened[0]))
        for covariance, below, variables in zip(prior.middle, values, whitened[1:], strict=False):
            known = prior.features(below)[self.rows]
            weights = matmul(_inverse_root(covariance, known).T, variables)
            u = matmul(covariance(prior.features_at(x, u, below), known), weights)
        return u


class CrossApproximation(AbstractHiddenMethod):
    """Hidden layers of this rank: O(N·rank²) a step.

    Rows are chosen for the first and the top layer's covariances together, anew after every maximisation step. The
    paper looks at the top layer alone, whose numerical rank is often lower than the first layer's.
    """

    rank: int = eqx.field(static=True, default=50)

    def __check_init__(self):
        if self.rank < 1:
            raise InputError(f"CrossApproximation(rank=...) must be at least 1; got {self.rank}.")

    def build(self, prior, selected):
        rank = min(self.rank, prior.x.shape[0])
        rows = pivots(prior, selected.features, rank)
        inverse_root, jitter, _ = safe_inverse_cholesky(prior.bottom(prior.x[rows], prior.x[rows]))
        factor = matmul(prior.bottom(prior.x, prior.x[rows]), inverse_root.T)
        error = 1.0 - jnp.mean(jnp.sum(factor**2, axis=1)) / prior.bottom.variance
        return CrossApproximatedHidden(rows, factor, inverse_root, error, jitter)


def pivots(prior: Prior, features: Float[Array, "S N E"], rank: int) -> Int[Array, " R"]:
    """The rows of a Cholesky factorisation that pivots on the largest part of the variance that is left: O(S·N·rank²).

    The part is the first layer's plus the top layer's, averaged over the particles.
    """
    N = prior.x.shape[0]
    layers = ((prior.bottom, prior.x[None]), (prior.top, features))

    def pivot(carry, step):
        rows, factors = carry
        explained = sum(_explained(k, A) for A, (k, _) in zip(factors, layers, strict=True))
        chosen = jnp.argmin(jnp.asarray(explained).at[rows].set(jnp.inf))
        factors = tuple(_extended(k, f, A, step, chosen) for A, (k, f) in zip(factors, layers, strict=True))
        return (rows.at[step].set(chosen), factors), None

    empty = tuple(jnp.zeros((f.shape[0], N, rank), f.dtype) for _, f in layers)
    return lax.scan(pivot, (jnp.full(rank, N, int), empty), jnp.arange(rank))[0][0]


def _explained(covariance: AbstractCovariance, A: Float[Array, "S N R"]) -> Float[Array, " N"]:
    """The part of every row's variance that the factor holds, averaged over the particles."""
    return jnp.sum(jnp.mean(A**2, axis=0), axis=1) / covariance.variance


def _extended(covariance: AbstractCovariance, features, A: Float[Array, "S N R"], step, chosen):
    """The factor with the column of one more row."""
    column, free = jax.vmap(lambda f, a: new_columns(covariance, f, a, chosen[None]))(features, A)
    return A.at[:, :, step].set(jnp.where(free, column[:, :, 0], 0.0))


def _inverse_root(covariance: AbstractCovariance, features: Float[Array, "R E"]) -> Float[Array, "R R"]:
    return safe_inverse_cholesky(covariance(features, features)).inverse
