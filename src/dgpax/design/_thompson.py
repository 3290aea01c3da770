"""Where a function that was drawn is smallest."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from ._base import AbstractCriterion, check_output

GOLDEN = 0.6180339887498949
"""Its multiples, without their whole parts, are spread evenly."""


class Thompson(AbstractCriterion):
    """The smallest value of one function drawn from what is believed, another one for every run of a batch [Thompson
    1933]; with `maximise`, the largest."""

    num_draws: ClassVar[int] = 32

    maximise: bool = eqx.field(static=True, default=False)
    output: int | None = eqx.field(static=True, default=None)

    def check(self, beliefs):
        check_output(self, self.output, beliefs)

    def scores(self, beliefs, x):
        drawn, weights = beliefs.draws(x)
        place = ((beliefs.num_pending + 1) * GOLDEN) % 1.0
        chosen = jnp.minimum(jnp.searchsorted(jnp.cumsum(weights), place), len(drawn) - 1)
        f = drawn[chosen, :, self.output or 0]
        return f if self.maximise else -f

    def relative(self, worth, spread):
        """A drawn function doesn't say when to stop."""
        return 1.0
