"""How much of the variance of f every input is to blame for, and how it moves f on average."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..design import Space
from ..errors import InputError
from ..fits import AbstractFit
from ..inference import check_count
from ..typing import Float
from ._rows import crossed, evaluated, even_points

NUM_DRAWS = 64
NUM_POINTS = 256


class Sensitivity(NamedTuple):
    """Of every input, for every function that was drawn: `first` [S, D], the share of the variance of f that it makes
    alone; `total` [S, D], with all that it does together with others. `main` has, per input, where it was looked at, in
    its units, and the mean of f there, [G] and [S, G]. `print` it."""

    names: tuple[str, ...]
    first: Float[np.ndarray, "S D"]
    total: Float[np.ndarray, "S D"]
    main: tuple[tuple[Any, Float[np.ndarray, "S G"]], ...]

    @property
    def order(self) -> list[int]:
        """The inputs, the most important first."""
        return np.argsort(-self.total.mean(axis=0)).tolist()

    def interval(self, coverage: float = 0.9) -> tuple[Float[np.ndarray, "2 D"], Float[np.ndarray, "2 D"]]:
        """What the first and the total indices may be, by what is believed about f."""
        tails = 0.5 * (1.0 - coverage), 0.5 * (1.0 + coverage)
        return np.quantile(self.first, tails, axis=0), np.quantile(self.total, tails, axis=0)

    def __str__(self) -> str:
        first, total = self.interval()
        lines = [f"{'input':<20} {'alone':<22} with all others"]
        for i in self.order:
            alone = f"{self.first[:, i].mean():.3f} ({first[0, i]:.3f}, {first[1, i]:.3f})"
            together = f"{self.total[:, i].mean():.3f} ({total[0, i]:.3f}, {total[1, i]:.3f})"
            lines.append(f"{self.names[i][:20]:<20} {alone:<22} {together}")
        return "\n".join([*lines, "Shares of the variance of f over the box, with 90% intervals."])


class PairEffect(NamedTuple):
    """The mean of f over all other inputs at pairs of values, in their units: [G], [H] and [G, H]."""

    names: tuple[str, str]
    first: list[Any]
    second: list[Any]
    mean: Float[np.ndarray, "G H"]


def sobol_indices(
    fitted: AbstractFit,
    bounds: Any,
    *,
    output: int = 0,
    num_draws: int = NUM_DRAWS,
    num_points: int = NUM_POINTS,
    seed: int = 0,
) -> Sensitivity:
    """Sobol' indices of f over a box in which all inputs are uniform and independent, with what isn't known of f.

    Var E(f | x_i)/Var f and E Var(f | all but x_i)/Var f [Sobol' 1993; Homma & Saltelli 1996], of every one of
    `num_draws` functions drawn from the fit: every input takes 24 values, each with the same `num_points` points for
    the others. `bounds` are those of `design.suggest`.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.random.default_rng(0).random((40, 2))
    >>> data = dgpax.dataset(x, x[:, 0] + 0.1 * x[:, 1])
    >>> fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    >>> found = dgpax.sensitivity.sobol_indices(fitted, [(0.0, 1.0), (0.0, 1.0)], num_draws=8, num_points=32)
    >>> found.first.mean(axis=0).round(2)
    array([0.99, 0.01])
    """
    space = checked_space(fitted, bounds, output)
    check_count("sobol_indices(num_draws=...)", num_draws, 2)
    check_count("sobol_indices(num_points=...)", num_points, 2)
    functions, points = fitted.functions(num_draws, seed=seed), even_points(space, num_points, seed)
    variance, first, total, main = [], [], [], []
    for index in range(len(space.names)):
        rows, values = crossed(space, (index,), points)
        f = evaluated(functions, rows.reshape(-1, rows.shape[-1]), output).reshape(num_draws, *rows.shape[:2])
        variance.append(f.var(axis=(1, 2)))
        first.append(f.mean(axis=2).var(axis=1))
        total.append(f.var(axis=1).mean(axis=1))
        main.append((in_units(space, index, values[:, 0]), f.mean(axis=2)))
    whole = np.maximum(np.mean(variance, axis=0), np.finfo(float).tiny)[:, None]
    return Sensitivity(space.names, np.stack(first, axis=1) / whole, np.stack(total, axis=1) / whole, tuple(main))


def pair_effect(
    fitted: AbstractFit,
    bounds: Any,
    inputs: tuple[int, int],
    *,
    output: int = 0,
    num_draws: int = 16,
    num_points: int = 32,
    seed: int = 0,
) -> PairEffect:
    """How two inputs move f together, on average over the others and over functions drawn from the fit.

    >>> import numpy as np
    >>> import dgpax
    >>> x = np.random.default_rng(0).random((30, 2))
    >>> data = dgpax.dataset(x, x[:, 0] * x[:, 1])
    >>> fitted = dgpax.fit(dgpax.gp_regression(data), data, progress=False)
    >>> dgpax.sensitivity.pair_effect(fitted, [(0.0, 1.0), (0.0, 1.0)], (0, 1), num_points=2).mean.shape
    (24, 24)
    """
    space = checked_space(fitted, bounds, output)
    if len(set(inputs)) != 2 or not all(0 <= index < len(space.names) for index in inputs):
        raise InputError(f"A pair needs two different inputs from 0 to {len(space.names) - 1}; got {inputs}.")
    rows, values = crossed(space, inputs, even_points(space, num_points, seed))
    f = evaluated(fitted.functions(num_draws, seed=seed), rows.reshape(-1, rows.shape[-1]), output)
    axes = [np.unique(values[:, column]) for column in range(2)]
    mean = f.reshape(num_draws, len(axes[0]), len(axes[1]), -1).mean(axis=(0, 3))
    first, second = (in_units(space, index, axis) for index, axis in zip(inputs, axes, strict=True))
    return PairEffect((space.names[inputs[0]], space.names[inputs[1]]), first, second, mean)


def in_units(space: Space, index: int, values: Float[np.ndarray, " G"]) -> list[Any]:
    """Values of an input from the unit cube, as a person writes them."""
    return [space.word(index, value) for value in values]


def checked_space(fitted: AbstractFit, bounds: Any, output: int) -> Space:
    """The box, if it is one for this fit and the fit has the output."""
    space, num_outputs = Space.of(bounds), fitted.model.layers[-1].num_outputs
    if len(space.columns) != fitted.num_inputs:
        raise InputError(
            f"bounds are for {len(space.columns)} inputs, {', '.join(space.columns)}; the model has "
            f"{fitted.num_inputs}. Give a pair (low, high) for every input, in their order."
        )
    if not 0 <= output < num_outputs:
        raise InputError(f"The model has {num_outputs} outputs; got output={output}. They count from 0.")
    return space
