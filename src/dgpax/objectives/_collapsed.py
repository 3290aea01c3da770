"""The collapsed variational bound of sparse GP regression."""

from __future__ import annotations

import jax.numpy as jnp

from ..data import Dataset
from ..model import DeepGP
from ..posteriors import CollapsedTerms, collapsed_statistics, noise_variances
from ..typing import Array, Float
from ._base import AbstractTerms
from ._evidence import LOG_2PI, log_density_terms


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
    return bound_of(collapsed_statistics(model, data, chunk_rows), noise_variances(model))


def bound_of(terms: CollapsedTerms, noise: Float[Array, " K"]) -> CollapsedBoundTerms:
    """The bound from its sums over the rows and the noise variances: one, or one per output."""
    N, P = terms.num_rows, terms.yy.shape[0]
    B = jnp.eye(terms.AA.shape[-1], dtype=terms.AA.dtype) + terms.AA / noise[:, None, None]
    explained, complexity, jitter = log_density_terms(B, _per_matrix(terms.Ay / noise[:, None, None]), P)
    missed = jnp.maximum(terms.variance - terms.explained, 0.0)
    return CollapsedBoundTerms(
        fit=-explained - 0.5 * jnp.sum(terms.yy / noise),
        complexity=complexity - 0.5 * N * jnp.sum(jnp.broadcast_to(jnp.log(noise), (P,))),
        constant=jnp.asarray(-0.5 * N * P * LOG_2PI, noise.dtype),
        trace=-0.5 * jnp.sum(jnp.broadcast_to(missed / noise, (len(B),))) * (P / len(B)),
        jitter=jitter,
    )


def _per_matrix(columns: Float[Array, "Q M P"]) -> Float[Array, "Q M K"]:
    """All columns for one shared matrix, else each matrix's own."""
    return columns if columns.shape[0] == 1 else jnp.einsum("pmp->pm", columns)[..., None]
