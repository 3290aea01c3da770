"""What is believed about the latent inputs of the training rows."""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..data import Dataset
from ..distributions import Gaussian
from ..linalg import matmul
from ..parameters import AbstractParameter, Positive, Real, as_positive, as_real
from ..typing import Array, Float, RandomKey


class AbstractLatents(eqx.Module):
    """q(w_n), independent from row to row and from column to column."""

    @abc.abstractmethod
    def __call__(self, batch: Dataset) -> Gaussian:
        """q(w_n) for the rows of a batch."""


class RowLatents(AbstractLatents):
    """A mean and a standard deviation for every row: exact to fit, O(N) parameters."""

    mean: AbstractParameter = eqx.field(converter=as_real)
    stddev: AbstractParameter = eqx.field(converter=as_positive)

    @classmethod
    def start(cls, num_rows: int, num_latents: int, dtype) -> RowLatents:
        """Near the prior."""
        return cls(Real(jnp.zeros((num_rows, num_latents), dtype)), Positive(jnp.ones((num_rows, num_latents), dtype)))

    def __call__(self, batch):
        rows = batch.row_numbers()
        return Gaussian(self.mean.value[rows], self.stddev.value[rows] ** 2)


class Encoder(AbstractLatents):
    """A neural network from (x_n, y_n) to the mean and the log standard deviation: parameters don't grow with N.

    tanh units, with a connection from the inputs past each hidden layer [Salimbeni et al. 2019, section 4]. Missing
    outputs enter as 0.
    """

    weights: tuple[AbstractParameter, ...]
    biases: tuple[AbstractParameter, ...]

    @classmethod
    def start(
        cls, num_inputs: int, num_outputs: int, num_latents: int, key: RandomKey, *, hidden: tuple[int, ...] = (20, 20)
    ) -> Encoder:
        """Random hidden weights; the last layer starts at zero, which gives the prior for every row."""
        sizes = (num_inputs + num_outputs, *hidden, 2 * num_latents)
        keys = jr.split(key, len(hidden))
        weights = [jr.normal(k, (a, b)) / jnp.sqrt(a) for k, a, b in zip(keys, sizes[:-2], sizes[1:-1], strict=True)]
        weights.append(jnp.zeros((sizes[-2], sizes[-1])))
        return cls(tuple(Real(w) for w in weights), tuple(Real(jnp.zeros(size)) for size in sizes[1:]))

    def features(self, batch: Dataset) -> Float[Array, "N H"]:
        """What the last layer is given."""
        h = jnp.concatenate([batch.x, jnp.nan_to_num(batch.y)], axis=-1)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            h = jnp.tanh(matmul(h, weight.value) + bias.value) + _padded(h, weight.shape[1])
        return h

    def near(self, batch: Dataset, mean: Float[Array, "N Q"], stddev: float) -> Encoder:
        """With the last layer that gives means near these, by least squares, and this standard deviation."""
        features = np.asarray(self.features(batch))
        centre = features.mean(axis=0)
        slope, *_ = np.linalg.lstsq(features - centre, np.asarray(mean) - np.mean(mean, axis=0), rcond=1e-6)
        weight = np.concatenate([slope, np.zeros_like(slope)], axis=1)
        bias = np.concatenate([np.mean(mean, axis=0) - centre @ slope, np.full(mean.shape[1], np.log(stddev))])
        return Encoder((*self.weights[:-1], Real(weight)), (*self.biases[:-1], Real(bias)))

    def __call__(self, batch):
        h = self.features(batch)
        mean, log_stddev = jnp.split(matmul(h, self.weights[-1].value) + self.biases[-1].value, 2, axis=-1)
        return Gaussian(mean, jnp.exp(2.0 * log_stddev))


def _padded(h: jax.Array, width: int) -> jax.Array:
    """The first `width` columns, with zeros where there are fewer."""
    return jnp.pad(h, ((0, 0), (0, max(0, width - h.shape[-1]))))[:, :width]
