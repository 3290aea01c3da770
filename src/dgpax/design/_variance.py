"""Where least is known."""

from __future__ import annotations

from ..linalg import matmul
from ._base import AbstractCriterion


class Variance(AbstractCriterion):
    """The variance of f, in squared units of y: active learning MacKay [MacKay 1992]."""

    def scores(self, beliefs, x):
        return matmul(beliefs.marginal(x).variance * beliefs.share_left_open(x), beliefs.output_weights)

    def relative(self, worth, spread):
        return max(worth, 0.0) ** 0.5 / spread
