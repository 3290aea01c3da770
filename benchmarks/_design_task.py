"""What is measured in sequential design; no more than NumPy and SciPy, as peers use it too."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from ._test_functions import FUNCTIONS

NUM_TEST, NUM_SEARCHED, NUM_DESCENTS = 2000, 100_000, 10


class Problem(NamedTuple):
    """A function in units of its standard deviation, and its smallest value."""

    num_inputs: int
    of: Callable[[np.ndarray], np.ndarray]
    smallest: float

    @classmethod
    def named(cls, name: str) -> Problem:
        function = next(one for one in FUNCTIONS if one.name == name)
        many = np.random.default_rng(0).uniform(size=(NUM_SEARCHED, function.num_inputs))
        values = function.of(many)
        mean, scale = values.mean(), values.std()

        def of(x):
            return (function.of(x) - mean) / scale

        starts = many[np.argsort(values)[:NUM_DESCENTS]]
        box = [(0.0, 1.0)] * function.num_inputs
        ends = [minimize(lambda u: float(of(u[None])[0]), start, bounds=box).fun for start in starts]
        return cls(function.num_inputs, of, float(min(of(starts).min(), *ends)))

    def test(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows on which RMSE is measured, the same for all."""
        x = np.random.default_rng(1).uniform(size=(NUM_TEST, self.num_inputs))
        return x, self.of(x)

    def hypercube(self, count: int, seed: int) -> np.ndarray:
        """A Latin hypercube."""
        return qmc.LatinHypercube(self.num_inputs, optimization="random-cd", rng=seed).random(count)
