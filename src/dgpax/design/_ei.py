"""Where the smallest value so far may be undercut."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.stats import norm

from ..linalg import einsum
from ..typing import Array, Float
from ._base import AbstractCriterion, check_output
from ._beliefs import Beliefs


class ExpectedImprovement(AbstractCriterion):
    """E max(best − f(x), 0), in the units of y [Jones, Schonlau & Welch 1998]; best is the smallest mean of f at the
    runs so far, or over the box where there are none. With `maximise`, above the largest.

    In closed form for mixtures. For several runs at once, over functions that are drawn once: what a run adds to the
    improvement that the pending ones bring in each of them, which is the gain in their joint expected improvement.
    """

    num_draws: ClassVar[int] = 128

    maximise: bool = eqx.field(static=True, default=False)
    output: int | None = eqx.field(static=True, default=None)

    def check(self, beliefs):
        check_output(self, self.output, beliefs)

    def scores(self, beliefs, x):
        best = self.best(beliefs)
        if not len(beliefs.pending):
            return self._in_closed_form(beliefs, x, best)
        drawn, w = beliefs.draws(jnp.concatenate([beliefs.pending, x]))
        f = self._signed(drawn)
        at_pending, at_x = f[:, : len(beliefs.pending)], f[:, len(beliefs.pending) :]
        done = jnp.min(jnp.where(beliefs.is_pending, at_pending, jnp.inf), axis=1, initial=jnp.inf)
        return einsum("s,sn->n", w, jnp.maximum(jnp.minimum(best, done)[:, None] - at_x, 0.0))

    def relative(self, worth, spread):
        return worth / spread

    def best(self, beliefs: Beliefs) -> Float[Array, ""]:
        """What is to be undercut: an upper end is turned round."""
        at_runs = self._signed(beliefs.marginal(beliefs.runs.x).mean)
        over_box = self._signed(beliefs.marginal(beliefs.references).mean)
        there = beliefs.runs.there
        return jnp.where(jnp.any(there), jnp.min(jnp.where(there, at_runs, jnp.inf)), jnp.min(over_box))

    def _in_closed_form(self, beliefs: Beliefs, x, best) -> Float[Array, " N"]:
        f = beliefs.marginal(x)
        gap = best - self._signed(f.components.mean)
        s = self._column(f.components.stddev)
        tiny = jnp.finfo(s.dtype).tiny
        z = gap / jnp.maximum(s, tiny)
        return einsum("s,sn->n", f.weights, gap * norm.cdf(z) + s * norm.pdf(z))

    def _column(self, values: Float[Array, "*b N P"]) -> Float[Array, "*b N"]:
        return values[..., self.output or 0]

    def _signed(self, values: Float[Array, "*b N P"]) -> Float[Array, "*b N"]:
        return -self._column(values) if self.maximise else self._column(values)
