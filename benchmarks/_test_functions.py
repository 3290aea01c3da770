"""Published test functions on the unit cube, smooth and not, with 1 to 10 inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class TestFunction(NamedTuple):
    """`of` takes rows of the unit cube; `noise` is a standard deviation in those of the function's values."""

    name: str
    num_inputs: int
    num_rows: int
    noise: float
    of: Callable[[np.ndarray], np.ndarray]
    source: str

    def draw(self, seed: int, num_test: int = 2000) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Inputs and outputs to train on, the latter with noise, and others to test on, which have it too.

        Outputs are in units of the function's standard deviation over the cube.
        """
        rng = np.random.default_rng([seed, *map(ord, self.name)])
        x = rng.uniform(size=(self.num_rows + num_test, self.num_inputs))
        many = self.of(np.random.default_rng(0).uniform(size=(20_000, self.num_inputs)))
        y = (self.of(x) - many.mean()) / (many.std() or 1.0) + self.noise * rng.normal(size=len(x))
        return x[: self.num_rows], y[: self.num_rows], x[self.num_rows :], y[self.num_rows :]


def _forrester(x):
    x = x[:, 0]
    return (6 * x - 2) ** 2 * np.sin(12 * x - 4)


def _gramacy_lee(x):
    x = 0.5 + 2.0 * x[:, 0]
    return np.sin(10 * np.pi * x) / (2 * x) + (x - 1) ** 4


def _higdon(x):
    """A wave up to 10, a line behind it."""
    x = 20.0 * x[:, 0]
    wave = np.sin(np.pi * x / 5) + 0.2 * np.cos(4 * np.pi * x / 5)
    return np.where(x < 9.6, wave, -1 + x / 10)


def _jump(x):
    return np.where(x[:, 0] < 0.5, -1.0, 1.0) + 0.2 * np.sin(8 * x[:, 0])


def _bumps(x):
    """The function "bumps" of Donoho and Johnstone."""
    at = np.array([0.1, 0.13, 0.15, 0.23, 0.25, 0.40, 0.44, 0.65, 0.76, 0.78, 0.81])
    height = np.array([4, 5, 3, 4, 5, 4.2, 2.1, 4.3, 3.1, 5.1, 4.2])
    width = np.array([0.005, 0.005, 0.006, 0.01, 0.01, 0.03, 0.01, 0.01, 0.005, 0.008, 0.005])
    return np.sum(height / (1 + np.abs(x - at) / width) ** 4, axis=1)


def _branin(x):
    a, b = 15 * x[:, 0] - 5, 15 * x[:, 1]
    return (b - 5.1 * a**2 / (4 * np.pi**2) + 5 * a / np.pi - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10


def _franke(x):
    a, b = 9 * x[:, 0], 9 * x[:, 1]
    return (
        0.75 * np.exp(-((a - 2) ** 2 + (b - 2) ** 2) / 4)
        + 0.75 * np.exp(-((a + 1) ** 2) / 49 - (b + 1) / 10)
        + 0.5 * np.exp(-((a - 7) ** 2 + (b - 3) ** 2) / 4)
        - 0.2 * np.exp(-((a - 4) ** 2) - (b - 7) ** 2)
    )


def _gramacy_corner(x):
    """All that happens is in one corner."""
    a, b = 8 * x[:, 0] - 2, 8 * x[:, 1] - 2
    return a * np.exp(-(a**2) - b**2)


def _steps(x):
    return np.floor(3 * x[:, 0]) + 2.0 * (x[:, 0] + x[:, 1] > 1)


def _ishigami(x):
    a, b, c = (np.pi * (2 * x - 1)).T
    return np.sin(a) + 7 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)


def _hartmann(x):
    A = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
    P = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
    inner = np.sum(A * (x[:, None] - P) ** 2, axis=-1)
    return -np.exp(-inner) @ np.array([1.0, 1.2, 3.0, 3.2])


def _friedman(x):
    """Five of ten inputs matter."""
    return 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]


def _piston(x):
    low = np.array([30, 0.005, 0.002, 1000, 90000, 290, 340])
    high = np.array([60, 0.020, 0.010, 5000, 110000, 296, 360])
    M, S, V0, k, P0, Ta, T0 = (low + (high - low) * x).T
    A = P0 * S + 19.62 * M - k * V0 / S
    V = S / (2 * k) * (np.sqrt(A**2 + 4 * k * P0 * V0 / T0 * Ta) - A)
    return 2 * np.pi * np.sqrt(M / (k + S**2 * P0 * V0 / T0 * Ta / V**2))


def _borehole(x):
    low = np.array([0.05, 100, 63070, 990, 63.1, 700, 1120, 9855])
    high = np.array([0.15, 50000, 115600, 1110, 116, 820, 1680, 12045])
    rw, r, Tu, Hu, Tl, Hl, L, Kw = (low + (high - low) * x).T
    log = np.log(r / rw)
    return 2 * np.pi * Tu * (Hu - Hl) / (log * (1 + 2 * L * Tu / (log * rw**2 * Kw) + Tu / Tl))


SITE = "Surjanovic and Bingham, Virtual Library of Simulation Experiments"
FUNCTIONS = (
    TestFunction("forrester", 1, 30, 0.0, _forrester, SITE),
    TestFunction("gramacy_lee", 1, 60, 0.1, _gramacy_lee, SITE),
    TestFunction("higdon", 1, 60, 0.1, _higdon, SITE + "; Gramacy and Lee 2008, the line behind the wave"),
    TestFunction("jump", 1, 80, 0.05, _jump, "own"),
    TestFunction("bumps", 1, 300, 0.1, _bumps, "Donoho and Johnstone 1994"),
    TestFunction("branin", 2, 80, 0.0, _branin, SITE),
    TestFunction("franke", 2, 100, 0.1, _franke, SITE),
    TestFunction("corner", 2, 100, 0.02, _gramacy_corner, "Gramacy and Lee 2008"),
    TestFunction("steps", 2, 300, 0.1, _steps, "own"),
    TestFunction("ishigami", 3, 150, 0.05, _ishigami, SITE),
    TestFunction("hartmann", 3, 100, 0.0, _hartmann, SITE),
    TestFunction("piston", 7, 150, 0.0, _piston, SITE),
    TestFunction("borehole", 8, 100, 0.05, _borehole, SITE),
    TestFunction("friedman", 10, 200, 0.2, _friedman, SITE),
)


def _noise_only(x):
    return np.zeros(len(x))


def _wiggly(x):
    return np.sin(25 * x[:, 0])


def _smooth(x):
    return np.sin(4 * x[:, 0]) + x[:, 0]


def _plane(x):
    return x @ np.array([1.0, -2.0, 0.5])


def _bowl(x):
    return np.sum((x - 0.4) ** 2, axis=1) + np.sin(3 * x[:, 0])


def _waves(x):
    return np.sin(5 * x[:, 0]) * np.cos(4 * x[:, 1])


def _additive(x):
    return np.sin(3 * x[:, 0]) + x[:, 1] ** 2 + np.exp(-x[:, 2]) + x[:, 3]


FAMILIES = (
    TestFunction("noise only", 1, 0, 1.0, _noise_only, "own"),
    TestFunction("wiggly", 1, 0, 0.2, _wiggly, "own"),
    TestFunction("smooth", 1, 0, 0.2, _smooth, "own"),
    TestFunction("jump", 1, 0, 0.1, _jump, "own"),
    TestFunction("noise-free bowl", 2, 0, 0.0, _bowl, "own"),
    TestFunction("waves", 2, 0, 0.2, _waves, "own"),
    TestFunction("plane", 3, 0, 0.3, _plane, "own"),
    TestFunction("additive", 4, 0, 0.3, _additive, "own"),
)
"""For coverage with few rows; how many is said where they are used."""
