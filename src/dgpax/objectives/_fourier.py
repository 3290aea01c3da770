"""The collapsed bound with Fourier features: the data are read once, for all hyperparameters."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from ..covariances import Kuf, Kuu, refuse_uncovered
from ..data import Dataset, sum_over_rows
from ..errors import InputError
from ..inducing import AdditiveFourier, Fourier, ProductFourier
from ..kernels import AbstractKernel
from ..layers import GPLayer
from ..linalg import AbstractRoot, matmul
from ..model import DeepGP
from ..parameters import find
from ..posteriors import CollapsedTerms, noise_variances, one_gp_layer
from ..typing import Array, Float
from ._collapsed import CollapsedBoundTerms, bound_of

FOURIER = (Fourier, AdditiveFourier, ProductFourier)
CHUNK_ROWS = 10_000


class FourierStatistics(eqx.Module):
    """ΦΦᵀ, Φr and rᵀr for features Φ = Kuf [M, N] and r = y − mean: all that the bound needs of the data."""

    features: Float[Array, "M M"]
    projections: Float[Array, "M P"]
    squares: Float[Array, " P"]
    first_row: Float[Array, "1 D"]
    num_rows: int = eqx.field(static=True)

    @classmethod
    def of(cls, model: DeepGP, data: Dataset, chunk_rows: int | None = None) -> FourierStatistics:
        """One pass over data in the model's units, `chunk_rows` (10,000) at a time: O(N·M²), not differentiated."""
        data.refuse_weights("Sparse inference")
        layer = one_gp_layer(model)
        _check(layer, data)
        chunk_rows = CHUNK_ROWS if chunk_rows is None else chunk_rows
        sums = eqx.filter_jit(sum_over_rows)(_sums, layer, (data.x, data.y), chunk_rows)
        return cls(*sums, first_row=data.x[:1], num_rows=data.num_rows)


def _sums(layer: GPLayer, rows: tuple[Float[Array, "B D"], Float[Array, "B P"]]):
    x, y = rows
    features = Kuf(layer.inducing, layer.kernel, x[None])[0]
    residual = y - layer.mean(x)
    return matmul(features, features.T), matmul(features, residual), jnp.sum(residual**2, axis=0)


def collapsed_bound_from(statistics: FourierStatistics, model: DeepGP) -> CollapsedBoundTerms:
    """`collapsed_bound(model, data)` at a cost that doesn't depend on the number of rows: O(M³).

    The features don't depend on the hyperparameters [Hensman, Durrande & Solin 2018, sec. 3.3], so that
    AAᵀ = R⁻¹ ΦΦᵀ R⁻ᵀ with RRᵀ = Kuu, and the variances of a stationary kernel are all equal.
    """
    layer = one_gp_layer(model)
    root = Kuu(layer.inducing, layer.kernel).root()
    variance = layer.kernel.diag(statistics.first_row[None])[..., 0]
    AA = _both_sides(root, _repeat(statistics.features, len(variance)))
    Ay = root.solve(_repeat(statistics.projections, len(variance)))
    N = statistics.num_rows
    explained = jnp.trace(AA, axis1=-2, axis2=-1)
    return bound_of(CollapsedTerms(AA, Ay, statistics.squares, N * variance, explained, N), noise_variances(model))


def _repeat(matrix: Float[Array, "M K"], num_kernels: int) -> Float[Array, "Q M K"]:
    return jnp.broadcast_to(matrix, (num_kernels, *matrix.shape))


def _both_sides(root: AbstractRoot, matrix: Float[Array, "Q M M"]) -> Float[Array, "Q M M"]:
    """R⁻¹ matrix R⁻ᵀ, exactly symmetric."""
    half = root.solve(matrix)
    product = root.solve(half.mT)
    return 0.5 * (product + product.mT)


def has_fourier_statistics(model: DeepGP) -> bool:
    """Whether the bound of a one-layer model needs no more than `FourierStatistics`."""
    layer = one_gp_layer(model)
    independent = isinstance(layer.kernel, AbstractKernel)
    return independent and isinstance(layer.inducing, FOURIER) and not _trains_its_mean(layer)


def _check(layer: GPLayer, data: Dataset) -> None:
    layer.independent_kernel()
    if not isinstance(layer.inducing, FOURIER):
        raise InputError(f"FourierStatistics need Fourier features; this layer has {type(layer.inducing).__name__}.")
    if _trains_its_mean(layer):
        raise InputError("FourierStatistics subtract the mean once; it can't be trained. Freeze it, or use Zero().")
    refuse_uncovered(layer.inducing, layer.kernel, data.x)


def _trains_its_mean(layer: GPLayer) -> bool:
    return any(parameter.trainable for parameter in find(layer.mean).values())
