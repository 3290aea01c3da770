"""The optimal Gaussian over the inducing outputs of a one-layer model with Gaussian noise."""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from ..covariances import Kuf, Kuu
from ..data import Dataset
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
    N = data.x.shape[0]
    if chunk_rows is None or chunk_rows >= N:
        sums = _sums(layer, root, data.x, data.y, jnp.ones(N, data.x.dtype))
    else:
        sums = _chunked_sums(layer, root, data, chunk_rows)
    return CollapsedTerms(*sums, num_rows=N)


def _sums(layer: GPLayer, root: AbstractRoot, x, y, weights):
    rows = x[None]
    A = root.solve(Kuf(layer.inducing, layer.kernel, rows)) * weights
    residual = (y - layer.mean(x)) * weights[:, None]
    AA = matmul(A, jnp.swapaxes(A, -1, -2))
    variance = jnp.sum(layer.kernel.diag(rows) * weights, axis=-1)
    return AA, matmul(A, residual), jnp.sum(residual**2, axis=0), variance, jnp.sum(A**2, axis=(-2, -1))


def _chunked_sums(layer: GPLayer, root: AbstractRoot, data: Dataset, chunk_rows: int):
    """Chunks are recomputed in the backward pass, so that memory doesn't grow with the rows there either."""
    N = data.x.shape[0]
    padding = -N % chunk_rows

    def chunks(array):
        padded = jnp.concatenate([array, jnp.broadcast_to(array[:1], (padding, *array.shape[1:]))])
        return padded.reshape(-1, chunk_rows, *array.shape[1:])

    weights = (jnp.arange(N + padding) < N).astype(data.x.dtype).reshape(-1, chunk_rows)
    part = jax.checkpoint(partial(_sums, layer, root))
    zero = jax.tree.map(
        lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(part, data.x[:1], data.y[:1], weights[0, :1])
    )

    def add(total, chunk):
        return jax.tree.map(jnp.add, total, part(*chunk)), None

    return lax.scan(add, zero, (chunks(data.x), chunks(data.y), weights))[0]


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
