"""The joint density of the observations and the inducing outputs, which samplers explore."""

from __future__ import annotations

import jax.numpy as jnp

from ..data import Dataset
from ..layers import refuse_latents
from ..model import DeepGP
from ..posteriors import Particles
from ..propagate import draw_noise, propagate
from ..typing import Array, Float, RandomKey
from ._base import AbstractTerms

LOG_2PI = 1.8378770664093453


class LogJointTerms(AbstractTerms):
    """log p(y, v) = log p(y | v) + log p(v)."""

    log_likelihood: Float[Array, ""]
    log_prior: Float[Array, ""]
    jitter: Float[Array, ""]

    @property
    def total(self):
        return self.log_likelihood + self.log_prior


def log_joint(model: DeepGP, outputs: Particles, batch: Dataset, *, key: RandomKey) -> LogJointTerms:
    """Σ_n log p(y_n | v) · N/B + log N(v; 0, I) at one value of the whitened inducing outputs [Havasi et al. 2018].

    p(y_n | v) is the predictive density: the last layer is integrated out, inner layers are drawn once given v. For
    data in the model's units.
    """
    refuse_latents(model.layers, "Sampling of inducing outputs")
    carry = outputs.begin(model.layers)
    noise = draw_noise(model.layers, key, 1, batch.num_rows, batch.x.dtype)
    q = model.likelihood.for_density(propagate(model.layers, outputs, batch.x, carry, noise))
    log_likelihood = jnp.sum(batch.weighted(model.likelihood.predictive_log_prob(q, batch.y)))
    log_prior = [-0.5 * jnp.sum(v**2 + LOG_2PI) for v in outputs.blocks if v is not None]
    return LogJointTerms(batch.scale * log_likelihood, jnp.sum(jnp.stack(log_prior)), carry.jitter())
