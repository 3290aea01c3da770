"""A different likelihood for every output."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from numpy.typing import ArrayLike

from ..distributions import Gaussian, GaussianOverOutputs
from ..errors import InputError
from ..typing import Array, Float, RandomKey
from ._base import AbstractLikelihood, AnyGaussian
from ._dependent import log_density_together


class PerOutput(AbstractLikelihood):
    """One likelihood per output, each with its own latent functions, in order: `PerOutput((Poisson(), Softmax(3)))`
    needs 1 + 3 latent functions for 2 outputs.

    >>> from dgpax.likelihoods import PerOutput, Poisson, Softmax
    >>> PerOutput((Poisson(), Softmax(3))).num_latents(num_outputs=2)
    4
    """

    likelihoods: tuple[AbstractLikelihood, ...] = eqx.field(converter=tuple)

    def __check_init__(self):
        if not self.likelihoods:
            raise InputError("PerOutput needs at least one likelihood, one for each output; got none.")
        self._latents()

    def num_latents(self, num_outputs: int) -> int:
        if num_outputs != len(self.likelihoods):
            raise InputError(
                f"PerOutput has {len(self.likelihoods)} likelihoods; the targets have {num_outputs} outputs. "
                "Give one likelihood for each output."
            )
        return self._latents()[-1].stop

    def for_expectation(self, outputs) -> AnyGaussian:
        return outputs.by_row()

    def log_prob(self, f: Float[Array, "*batch N Q"], y: Float[Array, "*#batch N P"]) -> Float[Array, "*batch N"]:
        parts = zip(self.likelihoods, self._split(f), _columns(y), strict=True)
        return _sum(likelihood.log_prob(f, y) for likelihood, f, y in parts)

    def expected_log_prob(self, q: AnyGaussian, y: Float[Array, "*#batch N P"]) -> Float[Array, "*batch N"]:
        parts = zip(self.likelihoods, self._split_gaussian(q), _columns(y), strict=True)
        return _sum(likelihood.expected_log_prob(q, y) for likelihood, q, y in parts)

    def predictive_log_prob(self, q: AnyGaussian, y: Float[Array, "*#batch N P"]) -> Float[Array, "*batch N"]:
        if isinstance(q, GaussianOverOutputs):
            return log_density_together(self, q, y)
        parts = zip(self.likelihoods, self._split_gaussian(q), _columns(y), strict=True)
        return _sum(likelihood.predictive_log_prob(q, y) for likelihood, q, y in parts)

    def conditional_mean(self, f: Float[Array, "*batch N Q"]) -> Float[Array, "*batch N E"]:
        return self._join(lambda likelihood, f: likelihood.conditional_mean(f), self._split(f))

    def conditional_variance(self, f: Float[Array, "*batch N Q"]) -> Float[Array, "*batch N E"]:
        return self._join(lambda likelihood, f: likelihood.conditional_variance(f), self._split(f))

    def predictive_mean(self, q: AnyGaussian) -> Float[Array, "*batch N E"]:
        return self._join(lambda likelihood, q: likelihood.predictive_mean(q), self._split_gaussian(q))

    def predictive_variance(self, q: AnyGaussian) -> Float[Array, "*batch N E"]:
        return self._join(lambda likelihood, q: likelihood.predictive_variance(q), self._split_gaussian(q))

    def sample(self, key: RandomKey, f: Float[Array, "*batch N Q"]) -> Float[Array, "*batch N P"]:
        keyed = zip(jr.split(key, len(self.likelihoods)), self._split(f), strict=True)
        return self._join(lambda likelihood, part: likelihood.sample(*part), keyed)

    def encode(self, y: Float[Array, "*batch N P"]) -> Float[Array, "*batch N E"]:
        return self._join(lambda likelihood, y: likelihood.encode(y), _columns(y))

    def check_targets(self, y: ArrayLike) -> None:
        if np.ndim(y) >= 2:
            self.num_latents(np.shape(y)[-1])
        for likelihood, column in zip(self.likelihoods, _columns(np.asarray(y)), strict=True):
            likelihood.check_targets(column)

    def _latents(self) -> list[slice]:
        """Which latent functions belong to which likelihood."""
        counts = [likelihood.num_latents(1) for likelihood in self.likelihoods]
        return [slice(start, stop) for start, stop in pairwise(accumulate(counts, initial=0))]

    def _split(self, f: Float[Array, "*batch N Q"]) -> list[Float[Array, "*batch N _"]]:
        return [f[..., latents] for latents in self._latents()]

    def _split_gaussian(self, q: AnyGaussian) -> list[AnyGaussian]:
        return [_latents_of(q, latents) for latents in self._latents()]

    def _join(self, function: Callable, parts) -> Float[Array, "..."]:
        return jnp.concatenate([function(*pair) for pair in zip(self.likelihoods, parts, strict=True)], axis=-1)


def _latents_of(q: AnyGaussian, own: slice) -> AnyGaussian:
    """q of some of the latent functions, together where there are several that depend on each other."""
    if isinstance(q, Gaussian) or own.stop - own.start == 1:
        return Gaussian(q.mean[..., own], q.variance[..., own])
    return GaussianOverOutputs(q.mean[..., own], q.covariance[..., own, own])


def _columns(y):
    return [y[..., p : p + 1] for p in range(y.shape[-1])]


def _sum(terms):
    return jnp.sum(jnp.stack(list(terms)), axis=0)
