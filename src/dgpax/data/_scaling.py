"""Standardisation that survives constant columns, large offsets and extreme units."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..programs import compiled
from ..typing import Array, Bool, Float
from ._dataset import Dataset

FLAT_BELOW = {"float64": 1e-12, "float32": 1e-6}


class Scaling(eqx.Module):
    """The affine map between the user's units and the model's: (x - x_mean) / x_scale, and the same for y.

    Where `x_constant`, the scaled input is 0 whatever comes. Results have the dtype of what is passed in.
    """

    x_mean: Float[Array, " D"]
    x_scale: Float[Array, " D"]
    y_mean: Float[Array, " P"]
    y_scale: Float[Array, " P"]
    x_constant: Bool[Array, " D"]

    def inputs(self, x: Float[Array, "*batch N D"]) -> Float[Array, "*batch N D"]:
        """Inputs in the model's units."""
        scaled = (x - self.x_mean) / self.x_scale
        return jnp.where(self.x_constant, 0.0, scaled).astype(x.dtype)

    def outputs(self, y: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        """Outputs in the model's units."""
        return ((y - self.y_mean) / self.y_scale).astype(y.dtype)

    def of_inputs(self) -> Scaling:
        """The same for x, and nothing for y."""
        return dataclasses.replace(self, y_mean=jnp.zeros_like(self.y_mean), y_scale=jnp.ones_like(self.y_scale))

    def dataset(self, data: Dataset) -> Dataset:
        """The same rows in the model's units."""
        return dataclasses.replace(data, x=self.inputs(data.x), y=self.outputs(data.y))

    def invert_outputs(self, y: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        """Outputs (values, samples, quantiles) in the user's units."""
        return (self.y_mean + self.y_scale * y).astype(y.dtype)

    def invert_mean(self, mean: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        """A predictive mean in the user's units."""
        return self.invert_outputs(mean)

    def invert_deviation(self, deviation: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        """A standard deviation in the user's units."""
        return (self.y_scale * deviation).astype(deviation.dtype)

    def invert_variance(self, variance: Float[Array, "*batch N P"]) -> Float[Array, "*batch N P"]:
        """A variance in the user's units; if its square overflows, ask for `invert_deviation`."""
        return (self.y_scale * (self.y_scale * variance)).astype(variance.dtype)

    @property
    def log_jacobian(self) -> Float[Array, " P"]:
        """-log(y_scale): add it to the log density of a scaled output to have that of the output in user's units."""
        return -jnp.log(self.y_scale)


class _Statistics(NamedTuple):
    mean: Float[Array, " D"]
    scale: Float[Array, " D"]
    constant: Bool[Array, " D"]


def standardise(data: Dataset) -> Scaling:
    """Mean 0 and population standard deviation 1 in every column of x and y; missing outputs don't count, and rows
    count as often as their weights say.

    >>> import dgpax
    >>> scaling = dgpax.data.standardise(dgpax.dataset([[0.0], [2.0]], [10.0, 30.0]))
    >>> scaling.y_mean, scaling.y_scale
    (Array([20.], dtype=float64), Array([10.], dtype=float64))
    """
    return _from_statistics(_statistics(data.x, data.weights), _statistics(data.y, data.weights))


def standardise_inputs(data: Dataset) -> Scaling:
    """Scale x only, for outputs that have units of their own: classes, counts, 0/1."""
    return _from_statistics(_statistics(data.x, data.weights), _unscaled(data.num_outputs))


def identity_scaling(num_inputs: int, num_outputs: int) -> Scaling:
    """Leaves everything as it is."""
    return _from_statistics(_unscaled(num_inputs), _unscaled(num_outputs))


def constant_columns(scaling: Scaling, names: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The inputs that have no influence because they never vary; x0, x1, … where there are no names."""
    constant = np.flatnonzero(np.asarray(scaling.x_constant))
    return tuple(names[i] if names else f"x{i}" for i in constant)


def _from_statistics(x: _Statistics, y: _Statistics) -> Scaling:
    return Scaling(x_mean=x.mean, x_scale=x.scale, y_mean=y.mean, y_scale=y.scale, x_constant=x.constant)


def _unscaled(size: int) -> _Statistics:
    return _Statistics(jnp.zeros(size), jnp.ones(size), jnp.zeros(size, bool))


@compiled
def _statistics(values: Float[Array, "N D"], weights: Float[Array, " N"] | None = None) -> _Statistics:
    """Two-pass mean and deviation, with the rounding error of the mean corrected [Chan, Golub & LeVeque 1983].

    Every column is divided by its largest magnitude first and its deviations from the mean by theirs, so that no
    square over- or underflows. A column is flat if its deviation is below 1e-12 of its magnitude (1e-6 in float32);
    it then has scale 1 and the middle of its range as mean. It takes two rows to call a flat column constant.
    """
    values = values.astype(jnp.result_type(float))
    weights = jnp.ones(len(values), values.dtype) if weights is None else weights.astype(values.dtype)
    present = ~jnp.isnan(values) & (weights > 0)[:, None]
    total = jnp.sum(present * weights[:, None], axis=0)

    def average(terms):
        return jnp.sum(jnp.where(present, weights[:, None] * terms, 0.0), axis=0) / jnp.where(total > 0, total, 1.0)

    def largest(terms):
        size = jnp.max(jnp.where(present, jnp.abs(terms), 0.0), axis=0)
        return jnp.where(size > 0.0, size, 1.0)

    magnitude = largest(values)
    relative = values / magnitude
    mean = average(relative)
    mean = mean + average(relative - mean)
    centred = relative - mean
    spread = largest(centred)
    deviation = spread * jnp.sqrt(average((centred / spread) ** 2))

    flat = deviation <= FLAT_BELOW[values.dtype.name]
    low = jnp.min(jnp.where(present, values, jnp.inf), axis=0)
    high = jnp.max(jnp.where(present, values, -jnp.inf), axis=0)
    middle = jnp.where(low <= high, low + 0.5 * (high - low), 0.0)
    return _Statistics(
        mean=jnp.where(flat, middle, magnitude * mean),
        scale=jnp.where(flat, 1.0, magnitude * deviation),
        constant=flat & (jnp.sum(weights > 0) > 1),
    )
