"""The evidence lower bound of any posterior family."""

from __future__ import annotations

import jax.numpy as jnp
import jax.random as jr

from ..data import Dataset
from ..distributions import Gaussian
from ..layers import LatentVariables
from ..model import DeepGP
from ..posteriors import AbstractPosterior
from ..propagate import Noise, draw_noise, propagate
from ..typing import Array, Float, RandomKey
from ._base import AbstractTerms
from ._rows import aligned, sum_over_rows


class ELBOTerms(AbstractTerms):
    """ELBO = expected log likelihood − KL of the inducing outputs − KL of latent variables."""

    expected_log_likelihood: Float[Array, ""]
    kl: Float[Array, ""]
    latent_kl: Float[Array, ""]
    jitter: Float[Array, ""]

    @property
    def total(self):
        return self.expected_log_likelihood - self.kl - self.latent_kl


def elbo(
    model: DeepGP,
    posterior: AbstractPosterior,
    batch: Dataset,
    *,
    key: RandomKey | None = None,
    num_samples: int = 1,
    chunk_rows: int | None = None,
) -> ELBOTerms:
    """Σ_n w_n E_q[log p(y_n | f_n)] · N/B − KL(q || p), by samples of the inner layers [DSVI, eq. 18].

    w_n is the weight of the row, 1 unless the data has some. For data in the model's units. A model with one layer
    needs neither a key nor samples. `chunk_rows` bounds the memory and keeps intermediates in a CPU's cache; it changes
    nothing else.
    """
    if len(model.layers) == 1:
        return _terms(model, posterior, posterior, batch, (), chunk_rows)
    if key is None:
        raise TypeError("A model with inner layers is sampled: pass key=jax.random.key(seed).")
    noise = _noise(model, key, num_samples, batch)
    functions = posterior.tractable(jr.fold_in(key, len(model.layers)), (num_samples,))
    return _terms(model, posterior, functions, batch, noise, chunk_rows)


def sampled_elbo(
    model: DeepGP,
    posterior: AbstractPosterior,
    batch: Dataset,
    *,
    key: RandomKey,
    num_samples: int = 1,
    chunk_rows: int | None = None,
) -> ELBOTerms:
    """The same bound, with inducing outputs that are drawn and not integrated out: noisier, for comparison [STAR,
    section 4.1]. For posteriors that couple layers; under others the layers are marginalised anyway."""
    key_outputs, key_noise = jr.split(key)
    noise = _noise(model, key_noise, num_samples, batch)
    return _terms(model, posterior, posterior.layerwise(key_outputs, (num_samples,)), batch, noise, chunk_rows)


def _terms(
    model: DeepGP,
    posterior: AbstractPosterior,
    functions: AbstractPosterior,
    batch: Dataset,
    noise: Noise,
    chunk_rows: int | None,
) -> ELBOTerms:
    """The likelihood under `functions`, the KL of the posterior."""
    carry = functions.begin(model.layers)
    rows = aligned((batch.x, batch.y, batch.row_numbers(), rows_first(noise)), batch.weights)
    per_chunk = sum_over_rows(expected_log_likelihood, (model, functions, carry), rows, chunk_rows)
    return ELBOTerms(
        batch.scale * per_chunk,
        posterior.kl(model.layers, carry),
        batch.scale * latent_kl(model, posterior, batch),
        carry.jitter(),
    )


def expected_log_likelihood(shared, rows) -> Float[Array, ""]:
    """Σ_n of E_q[log p(y_n | f_n)], as often as the row counts, averaged over samples."""
    model, posterior, carry = shared
    (x, y, numbers, noise), weights = rows
    batch = Dataset(x, y, rows=numbers, weights=weights)
    q = propagate(model.layers, posterior, x, carry, rows_first(noise), batch=batch)
    per_row = batch.weighted(model.likelihood.expected_log_prob(q, y))
    return jnp.sum(per_row) / (per_row.size / per_row.shape[-1])


def latent_kl(model: DeepGP, posterior: AbstractPosterior, batch: Dataset) -> Float[Array, ""]:
    """Σ_n KL(q(w_n) || N(0, I)) over the latent variables of the batch's rows."""
    total = jnp.zeros((), batch.x.dtype)
    for index, layer in enumerate(model.layers):
        if isinstance(layer, LatentVariables):
            per_row = jnp.sum(standard_kl(posterior.latents(index, batch)), axis=-1)
            total = total + jnp.sum(batch.weighted(per_row))
    return total


def standard_kl(q: Gaussian) -> Float[Array, "..."]:
    """KL(N(m, s²) || N(0, 1)) = ½ (m² + s² − 1 − log s²)."""
    return 0.5 * (q.mean**2 + q.variance - 1.0 - jnp.log(q.variance))


def rows_first(noise: Noise) -> Noise:
    """[S, N, Q] to [N, S, Q], so that rows can be cut into chunks; it is its own inverse."""
    return tuple(None if draws is None else jnp.swapaxes(draws, 0, 1) for draws in noise)


def _noise(model: DeepGP, key: RandomKey, num_samples: int, batch: Dataset) -> Noise:
    return draw_noise(model.layers, key, num_samples, batch.num_rows, batch.x.dtype)
