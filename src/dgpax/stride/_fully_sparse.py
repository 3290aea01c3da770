"""Hidden layers at the inducing points only, interpolated to the rows."""

from __future__ import annotations

import equinox as eqx

from ..errors import InputError
from ..linalg import matmul, safe_cholesky, safe_inverse_cholesky
from ..typing import Array, Float, Int, Scalar
from ._hidden import AbstractHidden, AbstractHiddenMethod, Prior, StandardHidden


class FullySparseHidden(AbstractHidden):
    """u_l = C_l ξ_l at the inducing points, C_l the Cholesky factor of their covariance [STRIDE, Algorithm 4].

    Between them a layer is what a stationary GP with the first layer's covariance predicts. The paper takes the one
    that the top layer starts with, noise included, which pulls a layer to 0 between the inducing points.
    """

    rows: Int[Array, " M"]
    at_rows: StandardHidden
    inverse_root: Float[Array, "M M"]
    """C⁻¹ of the interpolating GP, whose weights are K_mm⁻¹u = C⁻ᵀC⁻¹u."""
    factor: Float[Array, "N M"]
    """K_nm C⁻ᵀ of the interpolating GP."""
    jitter: Scalar

    def sites(self):
        return self.rows

    def values(self, prior, whitened):
        at_rows = self.at_rows.values(self._prior(prior), whitened)
        return tuple(matmul(self.factor, matmul(self.inverse_root, u)) for u in at_rows)

    def whiten(self, prior, values):
        return self.at_rows.whiten(self._prior(prior), tuple(u[self.rows] for u in values))

    def at(self, prior, whitened, x, spread):
        last = self.at_rows.values(self._prior(prior), whitened)[-1]
        weights = matmul(self.inverse_root.T, matmul(self.inverse_root, last))
        return matmul(prior.bottom(x, prior.x[self.rows]), weights)

    def _prior(self, prior: Prior) -> Prior:
        """Of the inducing points alone."""
        return eqx.tree_at(lambda prior: prior.x, prior, prior.x[self.rows])


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
        return FullySparseHidden(
            rows=selected.inducing, at_rows=StandardHidden(root, jitter), inverse_root=inverse_root, factor=factor,
            jitter=jitter,
        )  # fmt: skip
