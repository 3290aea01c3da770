"""Outputs that are the values of processes at all patches of an image."""

import math

import jax.numpy as jnp

from ..covariances import PatchProcesses
from ..distributions import Gaussian, GaussianOverBoth, GaussianOverInputs, GaussianOverOutputs
from ..linalg import einsum
from ._base import AbstractOutputs, At, joint_moments, outputs


@outputs.register(PatchProcesses)
class PatchOutputs(AbstractOutputs):
    """f_{p,c}(x) = g_c(x[p]), the channel varying fastest."""

    processes: PatchProcesses
    at: At

    def marginal(self):
        q = self.at.marginal(self.at.project(self.processes.kernel, self.processes.rows(self.at.x)))
        return Gaussian(self.processes.images(q.mean) + self.at.mean, self.processes.images(q.variance))

    def over_inputs(self):
        x, size = self.at.x, self.at.layer.num_outputs
        patch_by_patch = jnp.swapaxes(self.processes.grid.patches(x), -2, -3)
        mean, covariance = joint_moments(self.at, self.processes.kernel, patch_by_patch)
        covariance = covariance.reshape(*covariance.shape[:-4], size, *covariance.shape[-2:])
        return GaussianOverInputs(mean.reshape(*x.shape[:-2], -1, x.shape[-2]).mT + self.at.mean, covariance)

    def together(self):
        x, size = self.at.x, self.at.layer.num_outputs
        mean, covariance = joint_moments(self.at, self.processes.kernel, self.processes.grid.patches(x))
        apart = einsum("...cpq,cd->...pcqd", covariance, self._channels())
        mean = mean.mT.reshape(*x.shape[:-1], size) + self.at.mean
        return GaussianOverOutputs(mean, apart.reshape(*x.shape[:-1], size, size))

    def over_both(self):
        x, size = self.at.x, self.at.layer.num_outputs
        N, split = x.shape[-2], self.processes.grid.num_patches
        mean, covariance = joint_moments(self.at, self.processes.kernel, self.processes.rows(x))
        covariance = covariance.reshape(*covariance.shape[:-2], N, split, N, split)
        apart = einsum("...cnpmq,cd->...npcmqd", covariance, self._channels())
        mean = self.processes.images(mean.mT) + self.at.mean
        return GaussianOverBoth(mean, apart.reshape(*x.shape[:-2], N, size, N, size))

    def over_dependent(self):
        return self.over_both()

    def draw(self, noise):
        """The patches of an image share one draw of the inducing outputs; what these leave open is drawn by patch."""
        shape = (self.processes.grid.num_patches, self.processes.num_channels)
        projection = self.at.project(self.processes.kernel, self.processes.rows(self.at.x))
        moments = self.at.moments(projection.A)
        outputs, rest = jnp.split(noise, [noise.shape[-1] - math.prod(shape)], axis=-1)
        v = outputs.reshape(*noise.shape[:-1], shape[1], -1)
        spread = moments.spread.reshape(*moments.spread.shape[:-2], -1, shape[0], moments.spread.shape[-1])
        shared = einsum("...cnpr,...ncr->...npc", spread, v)
        residual = jnp.broadcast_to(projection.residual.mT, moments.mean.mT.shape)
        left = Gaussian(moments.mean.mT, residual)
        mean, stddev = (part.reshape(*part.shape[:-2], -1, *shape) for part in (left.mean, left.stddev))
        drawn = mean + shared + stddev * rest.reshape(*rest.shape[:-1], *shape)
        return drawn.reshape(*drawn.shape[:-2], -1) + self.at.mean, self.at.carry

    def _channels(self):
        return jnp.eye(self.processes.num_channels, dtype=self.at.x.dtype)
