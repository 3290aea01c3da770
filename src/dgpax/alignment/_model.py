"""The prior of warped sequences."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from ..conditional import Projection
from ..data import Scaling
from ..kernels import AbstractKernel
from ..layers import GPLayer
from ..likelihoods import GaussianNoise
from ..linalg import InverseRoot, matmul, safe_inverse_cholesky
from ..model import DeepGP
from ..parameters import AbstractParameter, as_positive
from ..typing import Array, Float
from ..warps import AbstractWarp

NUGGET = 1e-6


class WarpedModel(eqx.Module):
    """y_j = f_j(g_j(t)) + noise of variance noise_variance[j], j = 1 … J [CU, eq. 35].

    The g_j are independent draws of one prior over increasing functions. The f_j share a prior that pulls them
    together, f_j = f + d_j: cov(f_i(x), f_j(x')) = (1 + δ_ij discrepancy) k(x, x'). With the smaller a discrepancy the
    more of what differs between sequences must be a matter of time.

    Roots are known by their inverses: batches of triangular solves side by side, one for every draw, can block each
    other for ever on a CPU of few cores (in jaxlib 0.10), products can't.
    """

    warp: AbstractWarp
    kernel: AbstractKernel
    noise_variance: AbstractParameter = eqx.field(converter=as_positive)
    discrepancy: AbstractParameter = eqx.field(converter=as_positive)

    def covariance(self, x: Float[Array, "J A"], y: Float[Array, "J B"]) -> Float[Array, "JA JB"]:
        """Of f_j(x_j) for all j with f_j(y_j) for all j, one sequence after the other."""
        plain = self.kernel.cross(x.reshape(-1, 1), y.reshape(-1, 1))
        own = jnp.repeat(jnp.repeat(jnp.eye(len(x), dtype=plain.dtype), x.shape[1], axis=0), y.shape[1], axis=1)
        return plain * (1.0 + self.discrepancy.value * own)

    def variance(self, x: Float[Array, "J A"]) -> Float[Array, " JA"]:
        """The diagonal of the same."""
        return (1.0 + self.discrepancy.value) * self.kernel.diag(x.reshape(-1, 1))

    def root(self, locations: Float[Array, "J M"]) -> InverseRoot:
        """Of the covariance of inducing outputs f_j(location) + noise, whose variance is 1e-6 that of f: it bounds how
        badly conditioned they can get as locations move."""
        covariance = self.covariance(locations, locations)
        nugget = NUGGET * jnp.diag(self.variance(locations))
        return InverseRoot(*safe_inverse_cholesky(covariance + nugget))

    def project(self, x: Float[Array, "J A"], locations: Float[Array, "J M"], root: InverseRoot) -> Projection:
        """What f_j(x_j) has to do with the whitened inducing outputs; all sequences are one process of J·A rows."""
        A = matmul(root.inverse, self.covariance(locations, x)).T
        return Projection(A[None], jnp.maximum(self.variance(x) - jnp.sum(A**2, axis=1), 0.0)[None])

    def without_warps(self, scaling: Scaling) -> DeepGP:
        """y_j = f_j(t) + noise, for data of this scaling: what of the model is a Gaussian process of time."""
        layer = GPLayer(self.kernel, num_outputs=self.noise_variance.shape[0])
        return DeepGP(layer, GaussianNoise(self.noise_variance), scaling)
