"""Outputs that are independent processes, or linear mixtures of them."""

import equinox as eqx
import jax.numpy as jnp

from ..conditional import Projection
from ..covariances import IndependentProcesses
from ..distributions import Gaussian, GaussianOverBoth, GaussianOverInputs, GaussianOverOutputs
from ..linalg import einsum, matmul
from ..typing import Array, Float
from ._base import AbstractOutputs, At, joint_moments, outputs


@outputs.register(IndependentProcesses)
class IndependentOutputs(AbstractOutputs):
    """f = W g with independent g; without mixing f = g."""

    processes: IndependentProcesses
    at: At

    def marginal(self):
        W = self.processes.mixing
        if W is None:
            q = self.at.marginal(self._projection())
            return Gaussian(q.mean + self.at.mean, q.variance)
        q = self.at.jointly(self._projection())
        mean = matmul(q.mean, W.T) + self.at.mean
        if isinstance(q, Gaussian):
            return Gaussian(mean, matmul(q.variance, (W**2).T))
        return Gaussian(mean, einsum("pl,pk,...nlk->...np", W, W, q.covariance))

    def over_inputs(self):
        mean, covariance = self._over_rows()
        if self.processes.mixing is not None:
            covariance = einsum("pl,...lnm->...pnm", self.processes.mixing**2, covariance)
        return GaussianOverInputs(mean, covariance)

    def together(self):
        q, W = self.at.jointly(self._projection()), self.processes.mixing
        if W is None:
            return eqx.tree_at(lambda q: q.mean, q, q.mean + self.at.mean)
        mean = matmul(q.mean, W.T) + self.at.mean
        if isinstance(q, Gaussian):
            return GaussianOverOutputs(mean, matmul(W * q.variance[..., None, :], W.T))
        return GaussianOverOutputs(mean, einsum("pl,qk,...nlk->...npq", W, W, q.covariance))

    def over_both(self):
        mean, covariance = self._over_rows()
        W = self._mixing()
        return GaussianOverBoth(mean, einsum("pl,ql,...lnm->...npmq", W, W, covariance))

    def over_dependent(self):
        return self.over_inputs() if self.processes.mixing is None else self.over_both()

    def draw(self, noise):
        g, carry = self.at.draw(self._projection(), noise)
        return (g if self.processes.mixing is None else matmul(g, self.processes.mixing.T)) + self.at.mean, carry

    def _projection(self) -> Projection:
        return self.at.project(self.processes.kernel, self.at.x)

    def _over_rows(self):
        """The mean of the outputs, and the covariance of every process across the rows."""
        mean, covariance = joint_moments(self.at, self.processes.kernel, self.at.x)
        return matmul(mean.mT, self._mixing().T) + self.at.mean, covariance

    def _mixing(self) -> Float[Array, "P Q"]:
        W = self.processes.mixing
        return jnp.eye(self.at.layer.num_outputs, dtype=self.at.x.dtype) if W is None else W
