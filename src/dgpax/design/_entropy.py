"""Where it is open on which side of a level the function lies."""

from __future__ import annotations

import math

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.special import entr

from ..typing import Array, Float
from ._base import AbstractCriterion, check_output


class ContourEntropy(AbstractCriterion):
    """The entropy of "f(x) > level", in nats: it looks for the contour where f is the level, as of a failure [Cole et
    al. 2023; Booth, Renganathan & Gramacy 2024]. Pending runs take the share of it that they take of the variance."""

    level: float | Float[Array, ""]
    output: int | None = eqx.field(static=True, default=None)

    def check(self, beliefs):
        check_output(self, self.output, beliefs)

    def scores(self, beliefs, x):
        p = beliefs.marginal(x).cdf(jnp.asarray(self.level, x.dtype))
        entropy = (entr(p) + entr(1.0 - p)) * beliefs.share_left_open(x)
        return entropy[:, self.output or 0]

    def relative(self, worth, spread):
        return worth / math.log(2.0)
