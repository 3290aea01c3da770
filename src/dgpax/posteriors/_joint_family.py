"""What families with one Gaussian over all layers have in common."""

import abc

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..linalg import matmul, safe_cholesky
from ..parameters import AbstractParameter
from ..typing import Array, Float
from ._base import AbstractPosterior, Moments
from ._joint import draw_given_others, joint_given_others, marginal_given_others, padded
from ._latents import AbstractLatents
from ._mean_field import latents_of, whitened_mean
from ._natural import AbstractNatural
from ._particles import Particles


class AbstractJoint(AbstractPosterior):
    """A family whose carry is a JointCarry."""

    def marginal(self, index, projection, carry):
        return marginal_given_others(index, projection, carry)

    def jointly(self, index, projection, carry):
        return joint_given_others(index, projection, carry)

    def draw(self, index, projection, noise, carry):
        return draw_given_others(index, projection, noise, carry)

    def moments(self, index, A, carry):
        """The diagonal blocks of the joint covariance."""
        own = slice(carry.starts[index], carry.starts[index + 1])
        A = padded(A, carry.mean.shape[-1])
        return Moments(whitened_mean(A, carry.mean[own]), matmul(A, safe_cholesky(carry.covariance[own]).factor))


class AbstractJointOutputs(AbstractNatural):
    """A Gaussian over the whitened inducing outputs of all processes."""

    mean: eqx.AbstractVar[AbstractParameter]

    @abc.abstractmethod
    def apply(self, noise: Float[Array, "n M C"]) -> Float[Array, "n M C"]:
        """The root of the covariance times standard normal numbers."""


class AbstractWhitenedJoint(AbstractJoint):
    """A family with a Gaussian over whitened inducing outputs (`outputs`) of layers with `widths` processes, 0 where
    there are none, and the posteriors of latent variables at the layers of these (`others`)."""

    outputs: eqx.AbstractVar[AbstractJointOutputs]
    others: eqx.AbstractVar[tuple[AbstractLatents | None, ...]]
    widths: eqx.AbstractVar[tuple[int, ...]]

    def inducing(self, index, layer, carry):
        return layer.own_inducing()

    def tractable(self, key, shape):
        return self

    def layerwise(self, key, shape):
        mean = self.outputs.mean.value
        noise = jr.normal(key, (*mean.shape, int(np.prod(shape))), mean.dtype)
        v = jnp.moveaxis(mean[..., None] + self.outputs.apply(noise), -1, 0)
        return Particles.of_processes(v.reshape(*shape, *mean.shape), self.widths, self.others)

    def latents(self, index, batch):
        return latents_of(self.others, index, batch)
