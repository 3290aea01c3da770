"""The evidence lower bound of any posterior family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import logsumexp

from ..data import Dataset, aligned, sum_over_rows
from ..distributions import Gaussian
from ..errors import InputError
from ..layers import latent_layers
from ..likelihoods import AbstractLikelihood
from ..model import DeepGP
from ..posteriors import AbstractPosterior
from ..propagate import AbstractOutputs, Noise, draw_noise, propagate
from ..typing import Array, Float, RandomKey
from ._base import AbstractObjective, AbstractTerms

RowTerm = Callable[[AbstractLikelihood, AbstractOutputs, Float[Array, "N P"]], Float[Array, " N"]]


class VariationalTerms(AbstractTerms):
    """What the data say, less the KL of the inducing outputs, less that of latent variables."""

    log_likelihood: Float[Array, ""]
    """Its expectation under q, or what the objective has in its place."""
    kl: Float[Array, ""]
    latent_kl: Float[Array, ""] | float
    jitter: Float[Array, ""]

    @property
    def total(self):
        return self.log_likelihood - self.kl - self.latent_kl


class ELBO(AbstractObjective):
    """`elbo` of a model and its posterior."""

    num_samples: int = eqx.field(static=True, default=1)
    chunk_rows: int | None = eqx.field(static=True, default=None)

    def terms(self, target, data, key):
        return elbo(target[0], target[1], data, key=key, num_samples=self.num_samples, chunk_rows=self.chunk_rows)


class SampledELBO(AbstractObjective):
    """`sampled_elbo` of a model and its posterior."""

    num_samples: int = eqx.field(static=True, default=1)
    chunk_rows: int | None = eqx.field(static=True, default=None)

    def terms(self, target, data, key):
        return sampled_elbo(
            target[0], target[1], data, key=key, num_samples=self.num_samples, chunk_rows=self.chunk_rows
        )


class Predictive(AbstractObjective):
    """`predictive_objective` of a model and its posterior, with `kl_weight` times the KL."""

    num_samples: int = eqx.field(static=True, default=1)
    chunk_rows: int | None = eqx.field(static=True, default=None)
    kl_weight: float = eqx.field(static=True, default=1.0)

    def __check_init__(self):
        if not self.kl_weight > 0:
            raise InputError(f"Predictive(kl_weight=...) must be positive; got {self.kl_weight}.")

    def terms(self, target, data, key):
        return predictive_objective(
            target[0],
            target[1],
            data,
            key=key,
            num_samples=self.num_samples,
            chunk_rows=self.chunk_rows,
            kl_weight=self.kl_weight,
        )


def elbo(
    model: DeepGP,
    posterior: AbstractPosterior,
    batch: Dataset,
    *,
    key: RandomKey | None = None,
    num_samples: int = 1,
    chunk_rows: int | None = None,
) -> VariationalTerms:
    """Σ_n w_n E_q[log p(y_n | f_n)] · N/B − KL(q || p), by samples of the inner layers [DSVI, eq. 17].

    w_n is the weight of the row, 1 unless the data has some. For data in the model's units. A model with one layer
    needs neither a key nor samples. `chunk_rows` bounds the memory and keeps intermediates in a CPU's cache; it changes
    nothing else.
    """
    functions, noise = _drawn(model, posterior, batch, key, num_samples)
    return _terms(model, posterior, functions, batch, noise, chunk_rows, _expected)


def sampled_elbo(
    model: DeepGP,
    posterior: AbstractPosterior,
    batch: Dataset,
    *,
    key: RandomKey,
    num_samples: int = 1,
    chunk_rows: int | None = None,
) -> VariationalTerms:
    """The same bound, with inducing outputs that are drawn and not integrated out: noisier, for comparison [STAR,
    section 4.1]. For posteriors that couple layers; under others the layers are marginalised anyway."""
    key_outputs, key_noise = jr.split(key)
    noise = draw_noise(model.layers, key_noise, num_samples, batch.num_rows, batch.x.dtype)
    functions = posterior.layerwise(key_outputs, (num_samples,))
    return _terms(model, posterior, functions, batch, noise, chunk_rows, _expected)


def predictive_objective(
    model: DeepGP,
    posterior: AbstractPosterior,
    batch: Dataset,
    *,
    key: RandomKey | None = None,
    num_samples: int = 1,
    chunk_rows: int | None = None,
    kl_weight: float = 1.0,
) -> VariationalTerms:
    """Σ_n w_n log (1/S) Σ_s ∫ p(y_n | f) q_s(f) df · N/B − β KL [Jankowiak et al. 2020, "Parametric Gaussian process
    regressors", eq. 14; with the samples of inner layers as in their "Deep sigma point processes"].

    The log density that predictions are scored by, in the place of the ELBO's expected one: no bound on the evidence.
    """
    functions, noise = _drawn(model, posterior, batch, key, num_samples)
    terms = _terms(model, posterior, functions, batch, noise, chunk_rows, _log_mean_density)
    return replace(terms, kl=kl_weight * terms.kl, latent_kl=kl_weight * terms.latent_kl)


def _drawn(
    model: DeepGP, posterior: AbstractPosterior, batch: Dataset, key: RandomKey | None, num_samples: int
) -> tuple[AbstractPosterior, Noise]:
    """Something under which every layer is Gaussian given those before, and the noise of their draws."""
    if len(model.layers) == 1:
        return posterior, ()
    if key is None:
        raise TypeError("A model with inner layers is sampled: pass key=jax.random.key(seed).")
    noise = draw_noise(model.layers, key, num_samples, batch.num_rows, batch.x.dtype)
    return posterior.tractable(jr.fold_in(key, len(model.layers)), (num_samples,)), noise


def _terms(
    model: DeepGP,
    posterior: AbstractPosterior,
    functions: AbstractPosterior,
    batch: Dataset,
    noise: Noise,
    chunk_rows: int | None,
    row_term: RowTerm,
) -> VariationalTerms:
    """The data under `functions`, the KL of the posterior."""
    carry = functions.begin(model.layers)
    rows = aligned((batch.x, batch.y, batch.row_numbers(), rows_first(noise)), batch.weights)

    def of_rows(shared, rows):
        model, functions, carry = shared
        (x, y, numbers, noise), weights = rows
        own = Dataset(x, y, rows=numbers, weights=weights)
        outputs = propagate(model.layers, functions, x, carry, rows_first(noise), batch=own)
        return jnp.sum(own.weighted(row_term(model.likelihood, outputs, y)))

    return VariationalTerms(
        log_likelihood=batch.scale * sum_over_rows(of_rows, (model, functions, carry), rows, chunk_rows),
        kl=posterior.kl(model.layers, carry),
        latent_kl=batch.scale * latent_kl(model, posterior, batch),
        jitter=carry.jitter(),
    )


def _expected(likelihood: AbstractLikelihood, outputs: AbstractOutputs, y: Float[Array, "N P"]) -> Float[Array, " N"]:
    """E_q[log p(y_n | f_n)], averaged over samples."""
    values = likelihood.expected_log_prob(likelihood.for_expectation(outputs), y)
    return jnp.mean(values.reshape(-1, values.shape[-1]), axis=0)


def _log_mean_density(
    likelihood: AbstractLikelihood, outputs: AbstractOutputs, y: Float[Array, "N P"]
) -> Float[Array, " N"]:
    """The log of the mean, over samples, of the predictive density."""
    values = likelihood.predictive_log_prob(likelihood.for_density(outputs), y)
    each = values.reshape(-1, values.shape[-1])
    return logsumexp(each, axis=0) - jnp.log(len(each))


def latent_kl(model: DeepGP, posterior: AbstractPosterior, batch: Dataset) -> Float[Array, ""]:
    """Σ_n KL(q(w_n) || N(0, I)) over the latent variables of the batch's rows."""
    total = jnp.zeros((), batch.x.dtype)
    for index in latent_layers(model.layers):
        per_row = jnp.sum(standard_kl(posterior.latents(index, batch)), axis=-1)
        total = total + jnp.sum(batch.weighted(per_row))
    return total


def standard_kl(q: Gaussian) -> Float[Array, "..."]:
    """KL(N(m, s²) || N(0, 1)) = ½ (m² + s² − 1 − log s²)."""
    return 0.5 * (q.mean**2 + q.variance - 1.0 - jnp.log(q.variance))


def rows_first(noise: Noise) -> Noise:
    """[S, N, Q] to [N, S, Q], so that rows can be cut into chunks; it is its own inverse."""
    return tuple(None if draws is None else jnp.swapaxes(draws, 0, 1) for draws in noise)
