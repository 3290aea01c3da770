"""The exact log evidence of a one-layer model with Gaussian noise."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from ..data import Dataset
from ..linalg import matmul, safe_cholesky, solve_cholesky, solve_lower
from ..model import DeepGP
from ..posteriors import noisy_gram, one_gp_layer, stack_outputs
from ..typing import Array, Float
from ._base import AbstractTerms

LOG_2PI = 1.8378770664093453


class EvidenceTerms(AbstractTerms):
    """log p(y) = fit + complexity + constant."""

    fit: Float[Array, ""]
    complexity: Float[Array, ""]
    constant: Float[Array, ""]
    jitter: Float[Array, ""]

    @property
    def total(self):
        return self.fit + self.complexity + self.constant


def log_evidence(model: DeepGP, data: Dataset) -> EvidenceTerms:
    """log p(y | X), summed over outputs, for data in the model's units [Rasmussen & Williams 2006, eq. 2.30]."""
    data.refuse_weights("Exact inference")
    layer = one_gp_layer(model)
    K = noisy_gram(model, data.x)
    residual = data.y - layer.mean(data.x)
    fit, complexity, jitter = log_density_terms(K, stack_outputs(residual, K.shape[0]), residual.shape[1])
    constant = jnp.asarray(-0.5 * residual.size * LOG_2PI, residual.dtype)
    return EvidenceTerms(fit, complexity, constant, jitter)


@eqx.filter_custom_jvp
def log_density_terms(K: Float[Array, "Q N N"], residual: Float[Array, "Q N K"], num_outputs: int):
    """−½ rᵀK⁻¹r and −½ log|K|, each summed over outputs, and the jitter that the factorisation took."""
    cholesky = safe_cholesky(K, jitter=0.0)
    return (*_terms(cholesky.factor, residual, num_outputs), jnp.max(cholesky.jitter))


def _terms(L, residual, num_outputs):
    fit = -0.5 * jnp.sum(solve_lower(L, residual) ** 2)
    log_diagonal = jnp.log(jnp.diagonal(L, axis1=-2, axis2=-1))
    return fit, -jnp.sum(log_diagonal) * (num_outputs / L.shape[0])


@log_density_terms.def_jvp
def _(primals, tangents):
    """d(−½ rᵀK⁻¹r) = ½ αᵀ dK α − αᵀ dr and d(−½ log|K|) = −½ tr(K⁻¹ dK), α = K⁻¹r [R&W 2006, eq. 5.9].

    Half the cost of differentiating the factorisation, and safe where that would amplify rounding.
    """
    K, residual, num_outputs = primals
    dK, dr, _ = tangents
    dK = jnp.zeros_like(K) if dK is None else dK
    dr = jnp.zeros_like(residual) if dr is None else dr
    cholesky = safe_cholesky(K, jitter=0.0)
    L = cholesky.factor
    inverse = solve_cholesky(L, jnp.broadcast_to(jnp.eye(K.shape[-1], dtype=K.dtype), K.shape))
    alpha = matmul(inverse, residual)
    d_fit = 0.5 * jnp.sum(matmul(alpha, jnp.swapaxes(alpha, -1, -2)) * dK) - jnp.sum(alpha * dr)
    d_complexity = -0.5 * jnp.sum(inverse * dK) * (num_outputs / K.shape[0])
    jitter = jnp.max(cholesky.jitter)
    return (*_terms(L, residual, num_outputs), jitter), (d_fit, d_complexity, jnp.zeros_like(jitter))
