"""Covariances of a layer given the layer below, as functions of the features that the architecture makes of it."""

import abc

import equinox as eqx
import jax.numpy as jnp

from ..kernels import AbstractStationary
from ..linalg import matmul
from ..typing import Array, Float, Scalar

DIFFERENCES_UP_TO = 4


class AbstractCovariance(eqx.Module):
    """A covariance of features whose variance is the same everywhere."""

    kernel: eqx.AbstractVar[AbstractStationary]

    @abc.abstractmethod
    def __call__(self, f: Float[Array, "N E"], g: Float[Array, "M E"]) -> Float[Array, "N M"]:
        """Covariances between two sets of features."""

    @property
    def variance(self) -> Scalar:
        """The variance, whatever the features."""
        return self.kernel.variance.value


class Stationary(AbstractCovariance):
    """k(f, g) for a stationary kernel on the features."""

    kernel: AbstractStationary

    def __call__(self, f, g):
        scale = self.kernel.lengthscale.value
        return self.variance * self.kernel.shape(squared_distances(f / scale, g / scale))


class LocallyScaled(AbstractCovariance):
    """Paciorek's form of a stationary kernel; a feature is an input and, in the last column, its local length ℓ.

    σ² (2ℓℓ′/(h + h′))^(d/2) ρ(√2 r/√(h + h′)) with h = ℓ² and r the distance of the inputs in units of the kernel's
    length scale [Paciorek & Schervish 2004, eq. 8]. STRIDE, section 2.1, prints ρ(2r/(h + h′)) with the same prefactor,
    which isn't positive semi-definite.
    """

    kernel: AbstractStationary

    def __call__(self, f, g):
        scale = self.kernel.lengthscale.value
        r2 = squared_distances(f[:, :-1] / scale, g[:, :-1] / scale)
        local_f, local_g = f[:, -1:], g[:, -1]
        mean_square = 0.5 * (local_f**2 + local_g**2)
        prefactor = (local_f * local_g / mean_square) ** (0.5 * (f.shape[1] - 1))
        return self.variance * prefactor * self.kernel.shape(r2 / mean_square)


def squared_distances(x: Float[Array, "N D"], y: Float[Array, "M D"]) -> Float[Array, "N M"]:
    """|x_n − y_m|², for evaluation in the innermost loop of the sampler.

    By differences for few columns; for many by one product, whose sums of squares are columns of the factors, so that
    they are computed once.
    """
    if x.shape[1] <= DIFFERENCES_UP_TO:
        columns = ((a[:, None] - b) ** 2 for a, b in zip(x.T, y.T, strict=True))
        return sum(columns, jnp.zeros((x.shape[0], y.shape[0]), x.dtype))
    centre = jnp.mean(y, axis=0)
    x, y = x - centre, y - centre
    left = jnp.concatenate([x, jnp.sum(x**2, axis=1, keepdims=True), jnp.ones_like(x[:, :1])], axis=1)
    right = jnp.concatenate([-2.0 * y, jnp.ones_like(y[:, :1]), jnp.sum(y**2, axis=1, keepdims=True)], axis=1)
    return jnp.maximum(matmul(left, right.T), 0.0)
