"""What a criterion may ask about f: in raw units, of every part of a fit, in programs that all fits of a size share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..distributions import Gaussian, Mixture
from ..fits import AbstractFit, FitReport
from ..linalg import einsum, matmul, safe_cholesky, solve_lower
from ..model import DeepGP
from ..typing import Array, Bool, Float, Int

NUM_SAMPLES = 64
NUM_JOINT_SAMPLES = 16
"""Of the inner layers where rows are looked at together, which takes a matrix of all rows for each."""
NUM_FEATURES = 256
LEAST_SHARE = 1e-8
"""Of a variance, to stay away from 0/0."""
NO_REPORT = FitReport(
    inference="", engine="", num_rows=0, num_parameters=0, steps=0, seconds=0.0, objective_start=0.0,
    objective_end=0.0, stopped_because="", converged=True, unfinished=False, interrupted=False, resumed_at=(),
    rejected_steps=0, largest_jitter=0.0, clipped_variances=0, constant_columns=(), notes=(), history=np.zeros(0),
)  # fmt: skip


class Runs(eqx.Module):
    """What was run: rows [R, E] and values [R, P], filled up to one of few sizes; `there` says which are real."""

    x: Float[Array, "R E"]
    y: Float[Array, "R P"]
    there: Bool[Array, " R"]


class Beliefs(eqx.Module):
    """Everything in raw units. `pending` are runs that were chosen and have no values yet: the first `num_pending` of
    its rows. `references` cover the box evenly, and `noise` is the variance of a run about f."""

    parts: tuple[AbstractFit, ...]
    weights: Float[Array, " W"]
    functions: tuple[Callable[[Any], Float[Array, "S N P"]], ...]
    references: Float[Array, "G E"]
    noise: Float[Array, " P"]
    runs: Runs
    pending: Float[Array, "Q E"]
    num_pending: Int[Array, ""]

    @classmethod
    def of(cls, fitted: AbstractFit, references, runs: Runs, slots: int, seed: int, num_draws: int) -> Beliefs:
        """With `slots` places for pending runs, and so many functions of every part, which some models can't give."""
        parts = tuple(without_reports(part) for _, part in fitted.parts)
        drawn = [
            p.functions(num_draws, seed=seed + i, num_features=NUM_FEATURES) for i, p in enumerate(parts) if num_draws
        ]
        weights = jnp.asarray([weight for weight, _ in fitted.parts])
        pending = jnp.broadcast_to(references[:1], (slots, references.shape[1]))
        own = cls(
            parts, weights / weights.sum(), tuple(drawn), references, jnp.zeros(runs.y.shape[1]),
            runs, pending, jnp.zeros((), int),
        )  # fmt: skip
        return eqx.tree_at(lambda beliefs: beliefs.noise, own, _noise(own))

    def given(self, chosen: Float[Array, " E"]) -> Beliefs:
        """With one more pending run."""
        pending = self.pending.at[self.num_pending].set(chosen)
        return eqx.tree_at(lambda b: (b.pending, b.num_pending), self, (pending, self.num_pending + 1))

    @property
    def is_pending(self) -> Bool[Array, " Q"]:
        return jnp.arange(len(self.pending)) < self.num_pending

    @property
    def output_weights(self) -> Float[Array, " P"]:
        """By which variances of several outputs add up as if these had the same spread; 1 for a single one."""
        scaling = self.parts[0].model.scaling
        if scaling is None:
            return jnp.ones_like(self.noise)
        own = 1.0 / scaling.y_scale**2
        return own / jnp.mean(own)

    def marginal(self, x: Float[Array, "N E"]) -> Mixture:
        """q(f) of every row and output by itself."""
        each = [part.latent(part.inputs(x), num_samples=NUM_SAMPLES, seed=0) for part in self.parts]
        return self._mixture([in_raw_units(p.model, q) for p, q in zip(self.parts, each, strict=True)])

    def jointly(self, x: Float[Array, "N E"]) -> Float[Array, "P N N"]:
        """Cov(f(x), f(x')) of all rows: within the components of the mixture, and between their means."""
        means, covariances, weights = [], [], []
        for weight, part in zip(self.weights, self.parts, strict=True):
            q: Any = part.latent_jointly(part.inputs(x), "inputs", num_samples=NUM_JOINT_SAMPLES, seed=0)
            s = 1.0 if part.model.scaling is None else part.model.scaling.y_scale
            mean = (s * q.mean).reshape(-1, *q.mean.shape[-2:])
            cov = _over_rows(q).reshape(len(mean), mean.shape[2], mean.shape[1], mean.shape[1])
            means.append(mean)
            covariances.append((s * s * jnp.ones(mean.shape[2]))[:, None, None] * cov)
            weights.append(jnp.full(len(mean), weight / len(mean)))
        mean, w = jnp.concatenate(means), jnp.concatenate(weights)
        centred = mean - einsum("s,snp->np", w, mean)
        within = einsum("s,spnm->pnm", w, jnp.concatenate(covariances))
        return within + einsum("s,snp,smp->pnm", w, centred, centred)

    def left_open(self, x: Float[Array, "N E"]) -> Float[Array, "P N N"]:
        """Cov(f(x), f(x')) once the pending runs have values."""
        return self._conditioned(self.jointly(jnp.concatenate([self.pending, x])))

    def share_left_open(self, x: Float[Array, "N E"]) -> Float[Array, "N P"]:
        """Of every variance, the share that the pending runs leave."""
        Q = len(self.pending)
        if not Q:
            return jnp.ones((len(x), len(self.noise)))
        before = self.jointly(jnp.concatenate([self.pending, x]))
        after = jnp.diagonal(self._conditioned(before), axis1=1, axis2=2).T
        before = jnp.diagonal(before[:, Q:, Q:], axis1=1, axis2=2).T
        return jnp.clip(after / jnp.maximum(before, jnp.finfo(before.dtype).tiny), LEAST_SHARE, 1.0)

    def _conditioned(self, covariance: Float[Array, "P K K"]) -> Float[Array, "P N N"]:
        """From that of the pending runs, before all others, and the others, to that of the others given the runs."""
        Q = len(self.pending)
        if not Q:
            return covariance
        there = self.is_pending
        variance = jnp.diagonal(covariance, axis1=1, axis2=2)[:, :Q]
        added = jnp.where(there, self.noise[:, None] + LEAST_SHARE * variance, 1.0)
        own = jnp.where(there[:, None] & there, covariance[:, :Q, :Q], 0.0) + added[..., None] * jnp.eye(Q)
        half = solve_lower(safe_cholesky(own).factor, jnp.where(there[:, None], covariance[:, :Q, Q:], 0.0))
        return covariance[:, Q:, Q:] - matmul(half.mT, half)

    def draws(self, x: Float[Array, "N E"]) -> tuple[Float[Array, "S N P"], Float[Array, " S"]]:
        """The functions that were drawn, at these rows, and what every one of them weighs."""
        each = [functions(x) for functions in self.functions]
        pairs = zip(self.weights, each, strict=True)
        weights = [jnp.full(len(f), weight / len(f)) for weight, f in pairs]
        return jnp.concatenate(each), jnp.concatenate(weights)

    def _mixture(self, each: list[Gaussian]) -> Mixture:
        stacked = [jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[-2:]), q) for q in each]
        pairs = zip(self.weights, stacked, strict=True)
        weights = jnp.concatenate([jnp.full(len(q.mean), weight / len(q.mean)) for weight, q in pairs])
        return Mixture(jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *stacked), jnp.log(weights))


def in_raw_units(model: DeepGP, q: Gaussian) -> Gaussian:
    """A Gaussian in the units of the raw targets."""
    if model.scaling is None:
        return q
    return Gaussian(model.scaling.invert_mean(q.mean), model.scaling.invert_variance(q.variance))


def without_reports(fitted: AbstractFit) -> AbstractFit:
    """The same fit, which compiled programs take for the same as others of its shape."""
    inner = jax.tree.map(
        lambda node: without_reports(node) if isinstance(node, AbstractFit) else node,
        fitted,
        is_leaf=lambda node: isinstance(node, AbstractFit) and node is not fitted,
    )
    return dataclasses.replace(inner, report=NO_REPORT)


def _over_rows(q: Any) -> Float[Array, "..."]:
    """Covariances [*S, P, N, N], also of rows that don't depend on each other."""
    if not isinstance(q, Gaussian):
        return q.covariance
    return jnp.swapaxes(q.variance, -1, -2)[..., None] * jnp.eye(q.mean.shape[-2])


def _noise(beliefs: Beliefs) -> Float[Array, " P"]:
    """How much more a run varies than f, on average over the box; 0 where the noise isn't additive."""
    total = jnp.zeros_like(beliefs.noise)
    for weight, part in zip(beliefs.weights, beliefs.parts, strict=True):
        f = part.latent(part.inputs(beliefs.references), num_samples=NUM_SAMPLES, seed=0)
        y = part.model.likelihood.components(f)
        if y is not None and y.mean.shape == f.mean.shape:
            f, y = in_raw_units(part.model, f), in_raw_units(part.model, y)
            total = total + weight * jnp.mean((y.variance - f.variance).reshape(-1, len(total)), axis=0)
    return jnp.maximum(total, 0.0)
