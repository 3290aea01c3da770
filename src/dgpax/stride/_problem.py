"""The posterior of the hidden layers: prior, data, and how either is approximated."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from ..data import Dataset
from ..kernels import AbstractStationary
from ..programs import compiled
from ..typing import Array, Float, Int, Scalar
from ._architectures import AbstractArchitecture
from ._covariance import Stationary
from ._hidden import AbstractHidden, AbstractHiddenMethod, Prior, Selected, StandardHidden, Variables
from ._spread import Spread
from ._start import like
from ._top import AbstractTop, TopPosterior

ENTRIES_AT_ONCE = {"cpu": 250_000}
"""Covariances K_nm of particles that are worked on together: 2 MB in float64, about what a cache holds."""
ENTRIES_ON_ACCELERATORS = 100_000_000


class Look(NamedTuple):
    """E[f | a particle] at some rows, and the largest jitter that the particle takes."""

    f: Float[Array, "R P"]
    jitter: Scalar


class Posterior(eqx.Module):
    """p(hidden layers | y) up to a constant, on whitened variables."""

    prior: Prior
    hidden: AbstractHidden
    top: AbstractTop
    y: Float[Array, "N P"]
    noise_variance: Scalar
    """Of Gaussian noise; other likelihoods don't ask for it."""

    @property
    def num_entries(self) -> int:
        """Of the covariance K_nm, or K_nn without inducing points, of one particle."""
        num_rows, inducing = self.y.shape[0], self.top.inducing
        return num_rows * (num_rows if inducing is None else inducing.shape[0])

    def features(self, whitened: Variables) -> Float[Array, "N E"]:
        """Features of the top layer at the rows, for one particle."""
        below = self.top.split(whitened)[1]
        return self.prior.features(self.hidden.values(self.prior, below)[-1])

    def log_likelihood(self, whitened: Variables) -> Scalar:
        """log p(y | a particle)."""
        top = self.top.split(whitened)[0]
        return top.log_likelihood(self.prior.top, self.features(whitened), self.y, self.noise_variance)

    def condition(self, whitened: Variables) -> TopPosterior:
        """The top layer given a particle."""
        top = self.top.split(whitened)[0]
        return top.condition(self.prior.top, self.features(whitened), self.y, self.noise_variance)

    def look(self, whitened: Variables, rows: Int[Array, " R"]) -> Look:
        """What is watched of a particle."""
        below = self.top.split(whitened)[1]
        top = self.condition(whitened)
        mean, _ = top.predict(self.prior.top, self.features(whitened)[rows])
        return Look(mean, jnp.maximum(top.jitter, self.hidden.largest_jitter(self.prior, below)))

    def features_at(self, whitened: Variables, x: Float[Array, "K D"], spread: Spread) -> Float[Array, "K E"]:
        """Features of the top layer at new inputs, for one particle."""
        below = self.top.split(whitened)[1]
        u = self.hidden.at(self.prior, below, x, spread)
        return self.prior.features_at(x, u, self.hidden.values(self.prior, below)[-1])

    def each(self, function, particles, at_once: int):
        """A function of every particle, some at a time."""
        return lax.map(function, particles, batch_size=at_once)

    def moving(self) -> Posterior:
        """What a fit changes of it: None stands in place of the data, and of hidden layers that are never rebuilt."""

        def constant(posterior: Posterior) -> list:
            hidden = posterior.hidden
            own = [hidden.root, hidden.jitter] if isinstance(hidden, StandardHidden) else []
            return [posterior.prior.x, posterior.y, *own]

        return eqx.filter(eqx.tree_at(constant, self, [None] * len(constant(self))), eqx.is_array)


def deep_prior(architecture: AbstractArchitecture, x: Float[Array, "N D"], kernel: AbstractStationary):
    """The prior, and the values of all hidden layers at which its top layer is a GP with this kernel on x."""
    start = architecture.start(x, kernel)
    middle = (architecture.covariance(start.middle),) * (architecture.num_hidden - 1)
    top = architecture.covariance(like(start.top, start.top.lengthscale.value, start.top.variance.value))
    prior = Prior(architecture, Stationary(start.bottom), (*middle, top), x)
    return prior, (start.values,) * architecture.num_hidden


@compiled
def start_posterior(
    architecture: AbstractArchitecture,
    method: AbstractHiddenMethod,
    top: AbstractTop,
    data: Dataset,
    kernel: AbstractStationary,
    noise_variance: Scalar,
) -> tuple[Posterior, Variables]:
    """The posterior, and the whitened variables at which the top layer is stationary with this kernel."""
    prior, values = deep_prior(architecture, data.x, kernel)
    hidden = method.build(prior, Selected(top.inducing, prior.features(values[-1])[None]))
    return Posterior(prior, hidden, top, data.y, noise_variance), hidden.whiten(prior, values)


def suitable_particles_at_once(num_particles: int, num_entries: int) -> int:
    """As many particles as have covariances that fit into the cache, or an accelerator, together; at least 1."""
    entries = ENTRIES_AT_ONCE.get(jax.default_backend(), ENTRIES_ON_ACCELERATORS)
    return min(num_particles, max(1, entries // num_entries))


def largest_divisor(number: int, limit: int) -> int:
    """Of a number, at most the limit.

    So many particles at a time leave no remainder, whose loop XLA would run beside the other one: on CPUs the two can
    wait for each other's threads forever.
    """
    return max(divisor for divisor in range(1, min(number, limit) + 1) if number % divisor == 0)
