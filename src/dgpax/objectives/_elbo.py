"""The evidence lower bound of any posterior family."""

from __future__ import annotations

import jax.numpy as jnp

from ..data import Dataset
from ..model import DeepGP
from ..posteriors import AbstractPosterior
from ..propagate import propagate
from ..typing import Array, Float, RandomKey
from ._base import AbstractTerms


class ELBOTerms(AbstractTerms):
    """ELBO = expected log likelihood − KL."""

    expected_log_likelihood: Float[Array, ""]
    kl: Float[Array, ""]
    jitter: Float[Array, ""]

    @property
    def total(self):
        return self.expected_log_likelihood - self.kl


def elbo(
    model: DeepGP, posterior: AbstractPosterior, batch: Dataset, *, key: RandomKey | None = None, num_samples: int = 1
) -> ELBOTerms:
    """Σ_n E_q[log p(y_n | f_n)] · N/B − KL(q || p), by samples of the inner layers [DSVI, eq. 18].

    For data in the model's units. A model with one layer needs neither a key nor samples.
    """
    carry = posterior.begin(model.layers)
    x = batch.x
    if len(model.layers) > 1:
        x = jnp.broadcast_to(x, (num_samples, *x.shape))
    q = propagate(model.layers, posterior, x, carry, key=key)
    per_row = model.likelihood.expected_log_prob(q, batch.y)
    samples = 1 if len(model.layers) == 1 else num_samples
    jitter = jnp.stack([jnp.max(root.jitter) for root in carry.roots])
    return ELBOTerms(batch.scale * jnp.sum(per_row) / samples, posterior.kl(model.layers, carry), jnp.max(jitter))
