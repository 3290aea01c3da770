"""Where the function differs from its nearest run, or may."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp

from ..linalg import einsum, matmul
from ..typing import Array, Float
from ._base import AbstractCriterion
from ._beliefs import Beliefs

FAR = 1e300


class VIGF(AbstractCriterion):
    """The variance of the improvement for global fit, Var (f(x) − y*)² with y* the value of the nearest run
    [Mohammadi & Challenor 2022]: 4 v (m − y*)² + 2 v² where f(x) is N(m, v), and exact for mixtures. It goes where the
    function is steep.

    Nearest counts in standard deviations of the inputs; a pending run's value is taken to be its mean.
    """

    needs_runs: ClassVar[bool] = True

    def scores(self, beliefs, x):
        f, share = beliefs.marginal(x), beliefs.share_left_open(x)
        mean, variance, w = f.components.mean, f.components.variance * share, f.weights
        gap = (f.mean + jnp.sqrt(share) * (mean - f.mean)) - _nearest_values(beliefs, x)
        expected = gap**2 + variance
        within = einsum("s,snp->np", w, 4.0 * variance * gap**2 + 2.0 * variance**2)
        between = einsum("s,snp->np", w, (expected - einsum("s,snp->np", w, expected)) ** 2)
        return matmul(within + between, beliefs.output_weights**2)

    def relative(self, worth, spread):
        return max(worth, 0.0) ** 0.25 / spread


def _nearest_values(beliefs: Beliefs, x: Float[Array, "N E"]) -> Float[Array, "N P"]:
    runs, model = beliefs.runs, beliefs.parts[0].model
    rows, values, there = runs.x, runs.y, runs.there
    if len(beliefs.pending):
        rows = jnp.concatenate([rows, beliefs.pending])
        values = jnp.concatenate([values, beliefs.marginal(beliefs.pending).mean])
        there = jnp.concatenate([there, beliefs.is_pending])
    from_x, from_rows = model.inputs_to_model_units(x), model.inputs_to_model_units(rows)
    squared = jnp.sum((from_x[:, None] - from_rows) ** 2, axis=-1)
    return values[jnp.argmin(jnp.where(there, squared, FAR), axis=1)]
