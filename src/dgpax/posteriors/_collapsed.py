"""The optimal Gaussian over the inducing outputs of a one-layer model with Gaussian noise."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from ..covariances import Kuf, Kuu
from ..data import Dataset, sum_over_rows
from ..errors import InputError
from ..layers import GPLayer
from ..linalg import AbstractRoot, matmul, safe_cholesky, solve_lower, solve_lower_transposed
from ..model import DeepGP
from ..parameters import LowerTriangular, Real
from ..typing import Array, Float
from ._conjugate import noise_variances, one_gp_layer
from ._mean_field import GaussianBlock, MeanField


class CollapsedTerms(eqx.Module):
    """Sums over the rows, from which the bound and the optimal q follow. A = R⁻¹Kuf, RRᵀ = Kuu."""

    AA: Float[Array, "Q M M"]
    Ay: Float[Array, "Q M P"]
    yy: Float[Array, " P"]
    variance: Float[Array, " Q"]
    explained: Float[Array, " Q"]
    num_rows: int = eqx.field(static=True)


def collapsed_statistics(model: DeepGP, data: Dataset, chunk_rows: int | None = None) -> CollapsedTerms:
    """One pass over the rows, in chunks of `chunk_rows`: no array larger than M × chunk is ever made."""
    layer = one_gp_layer(model)
    if layer.inducing is None:
        raise InputError("Sparse inference needs inducing variables: GPLayer(kernel, inducing=Points(z)).")
    root = Kuu(layer.inducing, layer.independent_kernel()).root()
    sums = sum_over_rows(_sums, (layer, root), (data.x, data.y), chunk_rows)
    return CollapsedTerms(*sums, num_rows=data.num_rows)


def _sums(shared: tuple[GPLayer, AbstractRoot], rows: tuple[Float[Array, "N D"], Float[Array, "N P"]]):
    (layer, root), (x, y) = shared, rows
    A = root.solve(Kuf(layer.inducing, layer.kernel, x[None]))
    residual = y - layer.mean(x)
    AA = matmul(A, jnp.swapaxes(A, -1, -2))
    variance = jnp.sum(layer.kernel.diag(x[None]), axis=-1)
    return AA, matmul(A, residual), jnp.sum(residual**2, axis=0), variance, jnp.sum(A**2, axis=(-2, -1))


def optimal_posterior(model: DeepGP, data: Dataset, chunk_rows: int | None = None) -> MeanField:
    """q(v) = N(B⁻¹Ay/σ², B⁻¹), B = I + AAᵀ/σ², the maximiser of the bound [Titsias 2009, eq. 10, whitened]."""
    terms = collapsed_statistics(model, data, chunk_rows)
    noise = noise_variances(model)[:, None, None]
    M, P = terms.AA.shape[-1], terms.yy.shape[0]
    eye = jnp.eye(M, dtype=terms.AA.dtype)
    L = safe_cholesky(eye + terms.AA / noise, jitter=0.0).factor
    half = solve_lower(L, terms.Ay / noise)
    mean = solve_lower_transposed(L, half)
    mean = mean[0].T if mean.shape[0] == 1 else jnp.einsum("pmp->pm", mean)
    inverse = solve_lower(L, jnp.broadcast_to(eye, L.shape))
    covariance = matmul(jnp.swapaxes(inverse, -1, -2), inverse)
    root = jnp.broadcast_to(safe_cholesky(covariance, jitter=0.0).factor, (P, M, M))
    return MeanField((GaussianBlock(Real(mean), LowerTriangular(root)),))
