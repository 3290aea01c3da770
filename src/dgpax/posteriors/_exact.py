"""The exact posterior of a one-layer model with Gaussian noise."""

from __future__ import annotations

import jax.numpy as jnp

from ..data import Dataset
from ..inducing import Points
from ..linalg import TriangularRoot, safe_cholesky
from ..model import DeepGP
from ..parameters import fixed
from ..typing import Array, Float
from ._base import AbstractLayerwise, Carry, Moments
from ._conjugate import noisy_gram, one_gp_layer, stack_outputs
from ._mean_field import outputs_last, whitened_mean


class ExactPosterior(AbstractLayerwise):
    """f | y, held as the training inputs, the Cholesky factor of K + σ²I and L⁻¹(y − mean).

    It is the family whose inducing outputs are the noisy observations themselves and have no spread, so it
    shares `project` and the forward pass with every other one.
    """

    x: Float[Array, "N D"]
    root: TriangularRoot
    whitened: Float[Array, "P N"]

    @classmethod
    def condition(cls, model: DeepGP, data: Dataset) -> ExactPosterior:
        """The posterior given data in the model's units [Rasmussen & Williams 2006, Algorithm 2.1]."""
        layer = one_gp_layer(model)
        root = TriangularRoot(*safe_cholesky(noisy_gram(model, data.x), jitter=0.0))
        whitened = root.solve(stack_outputs(data.y - layer.mean(data.x), root.factor.shape[0]))
        return cls(data.x, root, jnp.swapaxes(whitened, -1, -2).reshape(-1, data.x.shape[0]))

    def begin(self, layers):
        return Carry((self.root,))

    def inducing(self, index, layer, carry):
        return Points(fixed(self.x))

    def marginal(self, index, projection, carry):
        return outputs_last(whitened_mean(projection.A, self.whitened), projection.residual)

    def moments(self, index, A, carry):
        mean = whitened_mean(A, self.whitened)
        return Moments(mean, jnp.zeros((*mean.shape, 0), mean.dtype))

    def latents(self, index, batch):
        raise TypeError("Exact inference has one GP layer and no latent variables.")

    def kl(self, layers, carry):
        """Exact inference has no gap: nothing to subtract from the evidence."""
        return jnp.zeros((), self.x.dtype)
