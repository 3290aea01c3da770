"""The maximisation step: inducing points, hyperparameters, and hidden layers expressed anew."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from ..programs import compiled
from ..typing import Array, Bool, Float, Int, RandomKey
from ._hidden import AbstractHiddenMethod, Selected, Standard
from ._hyperparameters import improve_hyperparameters, mean_bound
from ._initial import Initial
from ._problem import Posterior
from ._samplers import Chains, finite_or_never
from ._selection import exchange_rows
from ._settings import Schedule
from ._top import SparseTop


class Maximisation(eqx.Module):
    """Settings of the step."""

    hidden: AbstractHiddenMethod
    selectable: Bool[Array, " N"]
    """Rows that may be inducing points."""
    num_exchanges: int = eqx.field(static=True)
    num_candidates: int = eqx.field(static=True)
    num_updates: int = eqx.field(static=True)
    noise_known: bool = eqx.field(static=True)
    at_once: int = eqx.field(static=True)

    @classmethod
    def of(cls, schedule: Schedule, hidden: AbstractHiddenMethod, initial: Initial, at_once: int) -> Maximisation:
        """As a schedule has them, for data that a GP was trained on first."""
        counts = schedule.num_exchanges, schedule.num_candidates, schedule.num_updates
        return cls(hidden, initial.selectable, *counts, initial.noise_known, at_once)


class Improved(NamedTuple):
    """What the step gives: the bound is NaN unless the top layer is a sparse GP with Gaussian noise."""

    posterior: Posterior
    chains: Chains
    bound: Float[Array, ""]
    exchanged: Int[Array, ""]


@compiled
def restart(posterior: Posterior, position, scale: Float[Array, ""], at_once: int) -> Chains:
    """Chains at these positions."""
    return Chains(position, finite_or_never(posterior.each(posterior.log_likelihood, position, at_once)), scale)


@compiled
def maximise(posterior: Posterior, chains: Chains, settings: Maximisation, key: RandomKey) -> Improved:
    """Section 3.2: new inducing points; then the hidden layers, re-expressed where their approximation changed.

    F_V is for Gaussian noise, so that the inducing points of a sampled top layer stay.
    """
    features = posterior.each(posterior.features, chains.position, settings.at_once)
    bound, exchanged = jnp.asarray(jnp.nan), jnp.asarray(0)
    if isinstance(posterior.top, SparseTop):
        rows = _exchanged(posterior, features, posterior.top.inducing, settings, key)
        exchanged = jnp.sum(~jnp.isin(rows, posterior.top.inducing))
        posterior = eqx.tree_at(lambda p: p.top, posterior, SparseTop(rows))
        if settings.num_updates:
            posterior = improve_hyperparameters(
                posterior, features, settings.num_updates, noise_known=settings.noise_known
            )
        bound = mean_bound(posterior, features)
    posterior, position = _re_expressed(posterior, chains.position, features, settings)
    return Improved(posterior, restart(posterior, position, chains.scale, settings.at_once), bound, exchanged)


def _exchanged(posterior: Posterior, features, rows: Int[Array, " M"], settings: Maximisation, key: RandomKey):
    return exchange_rows(
        posterior.prior.top,
        features,
        posterior.y,
        posterior.noise_variance,
        settings.selectable,
        rows,
        num_exchanges=settings.num_exchanges,
        num_candidates=settings.num_candidates,
        particles_at_once=settings.at_once,
        key=key,
    )


def _re_expressed(posterior: Posterior, position, features, settings: Maximisation):
    """Hidden layers built for the new inducing points, and variables that represent the same values in them."""
    if isinstance(settings.hidden, Standard):
        return posterior, position
    hidden = settings.hidden.build(posterior.prior, Selected(posterior.top.inducing, features))

    def again(whitened):
        below = posterior.top.split(whitened)[1]
        values = posterior.hidden.values(posterior.prior, below)
        return (*hidden.whiten(posterior.prior, values), *whitened[len(below) :])

    return eqx.tree_at(lambda p: p.hidden, posterior, hidden), posterior.each(again, position, settings.at_once)
