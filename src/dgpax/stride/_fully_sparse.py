"""Hidden layers at the inducing points only, interpolated to the rows."""

from __future__ import annotations

from ..errors import InputError
from ..linalg import matmul, safe_cholesky, safe_inverse_cholesky, solve_lower
from ..typing import Array, Float, Int, Scalar
from ._architectures import Known
from ._hidden import AbstractHidden, AbstractHiddenMethod, Prior


class FullySparseHidden(AbstractHidden):
    """u_l = C_l ξ_l at the inducing points, C_l the Cholesky factor of their covariance [STRIDE, Algorithm 4].

    Between them a layer is what a stationary GP with the first layer's covariance predicts. The paper takes the one
    that the top layer starts with, noise included, which pulls a layer to 0 between the inducing points.
    """

    rows: Int[Array, " M"]
    root: Float[Array, "M M"]
    inverse_root: Float[Array, "M M"]
    """C⁻¹ of the interpolating GP, whose weights are K_mm⁻¹u = C⁻ᵀC⁻¹u."""
    factor: Float[Array, "N M"]
    """K_nm C⁻ᵀ of the interpolating GP."""
    jitter: Scalar

    def sites(self):
        return self.rows

    def _at_sites(self, prior: Prior, whitened):
        x = prior.x[self.rows]
        values = [matmul(self.root, whitened[0])]
        for covariance, variables in zip(prior.middle, whitened[1:], strict=True):
            features = prior.architecture.features(x, values[-1], Known(x, values[-1]))
            values.append(matmul(safe_cholesky(covariance(features, features)).factor, variables))
        return values

    def values(self, prior, whitened):
        return tuple(matmul(self.factor, matmul(self.inverse_root, u)) for u in self._at_sites(prior, whitened))

    def whiten(self, prior, values):
        x = prior.x[self.rows]
        sites = [u[self.rows] for u in values]
        whitened = [solve_lower(self.root, sites[0])]
        for covariance, below, u in zip(prior.middle, sites, sites[1:], strict=False):
            features = prior.architecture.features(x, below, Known(x, below))
            whitened.append(solve_lower(safe_cholesky(covariance(features, features)).factor, u))
        return tuple(whitened)

    def at(self, prior, whitened, x, spread):
        last = self._at_sites(prior, whitened)[-1]
        weights = matmul(self.inverse_root.T, matmul(self.inverse_root, last))
        return matmul(prior.bottom(x, prior.x[self.rows]), weights)


class FullySparse(AbstractHiddenMethod):
    """Hidden layers sampled at the inducing points: O(M³) a step, and O(N·M) for the interpolation."""

    def check(self, num_inducing):
        if num_inducing is None:
            raise InputError("FullySparse samples hidden layers at the inducing points: set num_inducing.")

    def build(self, prior, selected):
        assert selected.inducing is not None  # noqa: S101
        x = prior.x[selected.inducing]
        K = prior.bottom(x, x)
        inverse_root = safe_inverse_cholesky(K).inverse
        factor = matmul(prior.bottom(prior.x, x), inverse_root.T)
        root, jitter, _ = safe_cholesky(K)
        return FullySparseHidden(selected.inducing, root, inverse_root, factor, jitter)
