"""The collapsed variational bound of sparse GP regression."""

from __future__ import annotations

import jax.numpy as jnp

from ..data import Dataset
from ..linalg import safe_cholesky, solve_lower
from ..model import DeepGP
from ..posteriors import collapsed_statistics, noise_variances
from ..typing import Array, Float
from ._base import AbstractTerms
from ._evidence import LOG_2PI


class CollapsedBoundTerms(AbstractTerms):
    """The bound: log N(y | 0, Q + σ²I) = fit + complexity + constant, less the trace term."""

    fit: Float[Array, ""]
    complexity: Float[Array, ""]
    constant: Float[Array, ""]
    trace: Float[Array, ""]
    jitter: Float[Array, ""]

    @property
    def total(self):
        return self.fit + self.complexity + self.constant + self.trace


def collapsed_bound(model: DeepGP, data: Dataset, chunk_rows: int | None = None) -> CollapsedBoundTerms:
    """log N(y | 0, Q + σ²I) − tr(K − Q)/(2σ²), Q = KfuKuu⁻¹Kuf, summed over outputs [Titsias 2009, eq. 9]."""
    data.refuse_weights("Sparse inference")
    terms = collapsed_statistics(model, data, chunk_rows)
    noise = noise_variances(model)
    N, P = terms.num_rows, terms.yy.shape[0]
    Q = max(noise.shape[0], terms.AA.shape[0])
    per_matrix = P / Q
    cholesky = safe_cholesky(
        jnp.eye(terms.AA.shape[-1], dtype=terms.AA.dtype) + terms.AA / noise[:, None, None], jitter=0.0
    )
    L = cholesky.factor
    c = solve_lower(L, terms.Ay / noise[:, None, None])
    explained = jnp.sum(c**2) if Q == 1 else jnp.sum(jnp.einsum("pmp->pm", c) ** 2)
    log_noise = jnp.sum(jnp.broadcast_to(jnp.log(noise), (P,)))
    log_diagonal = jnp.log(jnp.diagonal(L, axis1=-2, axis2=-1))
    missed = jnp.maximum(terms.variance - terms.explained, 0.0)
    return CollapsedBoundTerms(
        fit=0.5 * (explained - jnp.sum(terms.yy / noise)),
        complexity=-jnp.sum(log_diagonal) * per_matrix - 0.5 * N * log_noise,
        constant=jnp.asarray(-0.5 * N * P * LOG_2PI, noise.dtype),
        trace=-0.5 * jnp.sum(jnp.broadcast_to(missed / noise, (Q,))) * per_matrix,
        jitter=jnp.max(cholesky.jitter),
    )
