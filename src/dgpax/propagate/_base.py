"""The outputs of one layer at some inputs: what every kind of process must answer."""

import abc

import equinox as eqx

from ..conditional import Projection, project, whitened_cross
from ..covariances import RuleTable
from ..distributions import AbstractJointGaussian, Gaussian, GaussianOverBoth, GaussianOverInputs, GaussianOverOutputs
from ..inducing import AbstractInducing
from ..kernels import AbstractKernel, AbstractMultiOutputKernel
from ..layers import GPLayer
from ..linalg import AbstractRoot, matmul
from ..posteriors import AbstractCarry, AbstractPosterior, Moments
from ..typing import Array, Float


class At(eqx.Module):
    """A layer of a model, what is believed about it, and where it is looked at."""

    index: int = eqx.field(static=True)
    layer: GPLayer
    posterior: AbstractPosterior
    x: Float[Array, "*b N D"]
    carry: AbstractCarry

    @property
    def inducing(self) -> AbstractInducing:
        """The layer's inducing variables under this posterior."""
        return self.posterior.inducing(self.index, self.layer, self.carry)

    @property
    def root(self) -> AbstractRoot:
        """The root of Kuu."""
        return self.carry.root(self.index)

    @property
    def mean(self) -> Float[Array, "*b N P"]:
        """The layer's mean function at x."""
        return self.layer.mean(self.x)

    def project(self, kernel: AbstractKernel | AbstractMultiOutputKernel, rows: Float[Array, "*c R d"]) -> Projection:
        """What rows of a kernel have to do with the inducing outputs."""
        return project(kernel, rows, self.inducing, self.root)

    def whitened_cross(
        self, kernel: AbstractKernel | AbstractMultiOutputKernel, rows: Float[Array, "*c R d"]
    ) -> Float[Array, "*c Q R M"]:
        """The same without the residual."""
        return whitened_cross(kernel, rows, self.inducing, self.root)

    def marginal(self, projection: Projection) -> Gaussian:
        """q of every row and process by itself."""
        return self.posterior.marginal(self.index, projection, self.carry)

    def jointly(self, projection: Projection) -> Gaussian | GaussianOverOutputs:
        """q of the processes of a row, together where they depend on each other."""
        return self.posterior.jointly(self.index, projection, self.carry)

    def draw(
        self, projection: Projection, noise: Float[Array, "*c R Q"]
    ) -> tuple[Float[Array, "*c R Q"], AbstractCarry]:
        """A draw of the processes at every row, and the carry that remembers it."""
        return self.posterior.draw(self.index, projection, noise, self.carry)

    def moments(self, A: Float[Array, "*c Q R M"]) -> Moments:
        """What the inducing outputs add to all rows together."""
        return self.posterior.moments(self.index, A, self.carry)


class AbstractOutputs(eqx.Module):
    """q(f_l(x)) of one layer, in the four shapes of [FRAMEWORK, Table 2], and draws of it."""

    at: eqx.AbstractVar[At]

    @abc.abstractmethod
    def marginal(self) -> Gaussian:
        """Every row and output by itself."""

    @abc.abstractmethod
    def over_inputs(self) -> GaussianOverInputs:
        """With the covariance between the rows, [..., P, N, N]."""

    def by_row(self) -> Gaussian | GaussianOverOutputs:
        """The outputs of a row, together where they depend on each other."""
        return self.marginal() if self.at.layer.num_outputs == 1 else self.together()

    @abc.abstractmethod
    def together(self) -> Gaussian | GaussianOverOutputs:
        """The same for several outputs."""

    def over_outputs(self) -> GaussianOverOutputs:
        """With the covariance between the outputs, [..., N, P, P], zeros included."""
        return GaussianOverOutputs.of(self.by_row())

    @abc.abstractmethod
    def over_both(self) -> GaussianOverBoth:
        """With the covariance between all rows and outputs, [..., N, P, N, P]."""

    @abc.abstractmethod
    def over_dependent(self) -> AbstractJointGaussian:
        """With the covariance between all rows, and between the outputs where they depend on each other."""

    @abc.abstractmethod
    def draw(self, noise: Float[Array, "*c N Q"]) -> tuple[Float[Array, "*c N P"], AbstractCarry]:
        """Every row by itself, outputs that depend on each other together; `noise` is standard normal. With it comes
        the carry for the layers behind."""


outputs = RuleTable("outputs", "The outputs of a layer at some inputs, by the processes behind them.", "processes, at")


def outputs_of(
    index: int, layer: GPLayer, posterior: AbstractPosterior, x: Float[Array, "*b N D"], carry: AbstractCarry
) -> AbstractOutputs:
    """q(f_l(x)), to be asked for in any shape."""
    return outputs(layer.processes(), At(index, layer, posterior, x, carry))


def joint_moments(at: At, kernel: AbstractKernel, rows: Float[Array, "*b R d"]):
    """Mean [..., Q, R] and covariance [..., Q, R, R] of every independent process across rows of its kernel."""
    A = at.whitened_cross(kernel, rows)
    moments = at.moments(A)
    covariance = kernel.gram(rows[..., None, :, :]) - matmul(A, A.mT)
    return moments.mean, covariance + matmul(moments.spread, moments.spread.mT)
