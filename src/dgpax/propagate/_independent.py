"""Outputs that are independent processes, or linear mixtures of them."""

import jax.numpy as jnp

from ..covariances import IndependentProcesses
from ..distributions import Gaussian, GaussianOverBoth, GaussianOverInputs, GaussianOverOutputs
from ..linalg import einsum, matmul
from ..typing import Array, Float
from ._base import AbstractOutputs, At, joint_moments, outputs_last


class IndependentOutputs(AbstractOutputs):
    """f = W g with independent g; without mixing f = g."""

    at: At
    processes: IndependentProcesses

    def marginal(self):
        q, W = self._processes(), self.processes.mixing
        if W is None:
            return Gaussian(q.mean + self.at.mean, q.variance)
        return Gaussian(matmul(q.mean, W.T) + self.at.mean, matmul(q.variance, W.T**2))

    def over_inputs(self):
        mean, covariance = self._over_rows()
        if self.processes.mixing is not None:
            covariance = einsum("pl,...lnm->...pnm", self.processes.mixing**2, covariance)
        return GaussianOverInputs(mean, covariance)

    def over_outputs(self):
        q, W = self._processes(), self._mixing()
        return GaussianOverOutputs(matmul(q.mean, W.T) + self.at.mean, einsum("pl,ql,...nl->...npq", W, W, q.variance))

    def over_both(self):
        mean, covariance = self._over_rows()
        W = self._mixing()
        return GaussianOverBoth(mean, einsum("pl,ql,...lnm->...npmq", W, W, covariance))

    def over_dependent(self):
        return self.over_inputs() if self.processes.mixing is None else self.over_both()

    def draw(self, noise):
        q = self._processes()
        g = q.mean + q.stddev * noise
        return (g if self.processes.mixing is None else matmul(g, self.processes.mixing.T)) + self.at.mean

    def _processes(self) -> Gaussian:
        return self.at.marginal(self.at.project(self.processes.kernel, self.at.x))

    def _over_rows(self):
        """The mean of the outputs, and the covariance of every process across the rows."""
        mean, covariance = joint_moments(self.at, self.processes.kernel, self.at.x)
        return matmul(outputs_last(mean), self._mixing().T) + self.at.mean, covariance

    def _mixing(self) -> Float[Array, "P Q"]:
        W = self.processes.mixing
        return jnp.eye(self.at.layer.num_outputs, dtype=self.at.x.dtype) if W is None else W
