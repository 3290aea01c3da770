"""Outputs that all depend on one set of inducing variables."""

import equinox as eqx
import jax.numpy as jnp

from ..conditional import Projection
from ..covariances import SharedProcesses
from ..distributions import Gaussian, GaussianOverBoth, GaussianOverInputs
from ..linalg import einsum
from ._base import AbstractOutputs, At, outputs


@outputs.register(SharedProcesses)
class SharedOutputs(AbstractOutputs):
    """A multi-output kernel whose inducing variables belong to all outputs."""

    processes: SharedProcesses
    at: At

    def marginal(self):
        q = self.at.marginal(self.at.project(self.processes.kernel, self.at.x))
        return Gaussian(q.mean + self.at.mean, q.variance)

    def over_inputs(self):
        both = self.over_both()
        return GaussianOverInputs(both.mean, einsum("...npmp->...pnm", both.covariance))

    def together(self):
        q = self.at.jointly(self._projection())
        return eqx.tree_at(lambda q: q.mean, q, q.mean + self.at.mean)

    def over_both(self):
        A = self.at.whitened_cross(self.processes.kernel, self.at.x)
        moments, rows = self.at.moments(A), self.at.x[..., None, :, :]
        covariance = einsum("...pnqm->...npmq", self.processes.kernel.cross(rows, rows))
        covariance = covariance + einsum("...pnr,...qmr->...npmq", moments.spread, moments.spread)
        covariance = covariance - einsum("...pnr,...qmr->...npmq", A, A)
        return GaussianOverBoth(moments.mean.mT + self.at.mean, covariance)

    def over_dependent(self):
        return self.over_both()

    def draw(self, noise):
        f, carry = self.at.draw(self._projection(), noise)
        return f + self.at.mean, carry

    def _projection(self) -> Projection:
        """With the covariance between the outputs of a row that the inducing outputs leave open."""
        A = self.at.whitened_cross(self.processes.kernel, self.at.x)
        prior = self.processes.kernel.over_outputs(self.at.x[..., None, :, :])
        between = prior - einsum("...pnm,...qnm->...npq", A, A)
        return Projection(A, jnp.diagonal(between, axis1=-2, axis2=-1).mT, between)
