"""One Gaussian over the inducing outputs of all layers: what every row's layers are, given those before them.

For a row n, f_l = A_l v_l + rest with v jointly Gaussian, so that all f_1 … f_L of a row would be jointly Gaussian if
the A_l were given. Layer by layer they are: the Cholesky factor of their covariance is extended by the rows of a layer
once its inputs were drawn, which is Theorem 1 of STAR without its inverses. Parts of the factor that are zero by the
block pattern are None and cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..conditional import Projection
from ..distributions import Gaussian, GaussianOverOutputs
from ..linalg import AbstractRoot, BlockPattern, bilinear_forms, matmul, quadratic_forms
from ..typing import Array, Float
from ._base import AbstractCarry
from ._mean_field import whitened_mean
from ._rows import RowMatrix


class DrawnLayer(eqx.Module):
    """What is remembered of a layer that was drawn: its projections, its rows of the factor (a part for every layer
    before it, and the triangular one of its own), its noise."""

    A: Float[Array, "*b Q N M"]
    processes: tuple[int, ...] = eqx.field(static=True)
    earlier: tuple[RowMatrix | None, ...]
    own: RowMatrix
    noise: Float[Array, "*c N C"]


class JointCarry(AbstractCarry):
    """The mean and the non-zero blocks of the covariance of all whitened inducing outputs, and the draws so far.

    `starts` says at which process every layer begins.
    """

    roots: tuple[AbstractRoot | None, ...]
    mean: Float[Array, "n M"]
    covariance: Float[Array, "J M M"]
    pattern: BlockPattern = eqx.field(static=True)
    starts: tuple[int, ...] = eqx.field(static=True)
    drawn: tuple[DrawnLayer, ...] = ()


class Coordinates(NamedTuple):
    """A layer's values at a row: projections, and the process behind every one. It is one each, or the same for all
    outputs that share inducing variables."""

    A: Float[Array, "*b Q N M"]
    processes: tuple[int, ...]


def marginal_given_others(index: int, projection: Projection, carry: JointCarry) -> Gaussian:
    """q(f_l | f_1 … f_{l−1}) for every row and process by itself [STAR, Theorem 1]."""
    layer = _coordinates(index, projection, carry)
    earlier = _earlier_parts(carry, layer)
    variance = _covariances(carry, layer, layer, [(c, c) for c in range(len(layer.processes))])
    variance = variance + projection.residual.mT
    for part in earlier:
        if part is not None:
            variance = variance - (part.value**2 if part.diagonal else jnp.sum(part.value**2, axis=-1))
    mean = _mean(carry, layer, earlier)
    shape = jnp.broadcast_shapes(mean.shape, variance.shape)
    return Gaussian(jnp.broadcast_to(mean, shape), jnp.broadcast_to(jnp.maximum(variance, 0.0), shape))


def joint_given_others(index: int, projection: Projection, carry: JointCarry) -> Gaussian | GaussianOverOutputs:
    """The same for the processes of a row together, where they depend on each other."""
    layer = _coordinates(index, projection, carry)
    earlier = _earlier_parts(carry, layer)
    mean, own = _mean(carry, layer, earlier), _own_covariance(carry, layer, projection, earlier)
    shape = jnp.broadcast_shapes(mean.shape, own.value.shape if own.diagonal else own.value.shape[:-1])
    mean = jnp.broadcast_to(mean, shape)
    if own.diagonal:
        return Gaussian(mean, jnp.broadcast_to(jnp.maximum(own.value, 0.0), shape))
    return GaussianOverOutputs(mean, jnp.broadcast_to(own.value, (*shape, shape[-1])))


def draw_given_others(
    index: int, projection: Projection, noise: Float[Array, "*b N C"], carry: JointCarry
) -> tuple[Float[Array, "*b N C"], JointCarry]:
    """A draw of the layer's processes at every row, remembered for the layers behind it."""
    layer = _coordinates(index, projection, carry)
    earlier = _earlier_parts(carry, layer)
    own = _own_covariance(carry, layer, projection, earlier).cholesky()
    f = _mean(carry, layer, earlier) + own.times(noise)
    drawn = (*carry.drawn, DrawnLayer(layer.A, layer.processes, tuple(earlier), own, noise))
    remembered = JointCarry(carry.roots, carry.mean, carry.covariance, carry.pattern, carry.starts, drawn)
    return jnp.broadcast_to(f, noise.shape), remembered


def padded(A: Float[Array, "*b K"], size: int) -> Float[Array, "*b M"]:
    """With zeros where a layer has fewer inducing outputs than the largest."""
    missing = size - A.shape[-1]
    return A if missing == 0 else jnp.pad(A, [(0, 0)] * (A.ndim - 1) + [(0, missing)])


def _coordinates(index: int, projection: Projection, carry: JointCarry) -> Coordinates:
    A = padded(projection.A, carry.mean.shape[-1])
    first, behind = carry.starts[index], carry.starts[index + 1]
    return Coordinates(A, tuple(range(first, behind)) if behind - first > 1 else (first,) * A.shape[-3])


def _mean(carry: JointCarry, layer: Coordinates, earlier: Sequence[RowMatrix | None]) -> Float[Array, "*b N C"]:
    mean = whitened_mean(layer.A, _taken(carry.mean, layer.processes)).mT
    for part, drawn in zip(earlier, carry.drawn, strict=True):
        mean = mean if part is None else mean + part.times(drawn.noise)
    return mean


def _earlier_parts(carry: JointCarry, layer: Coordinates) -> list[RowMatrix | None]:
    """The factor's parts for the layers before: Λ_k = (C_k − Σ_{j<k} Λ_j Λ_kjᵀ) L_k⁻ᵀ, one after the other."""
    parts: list[RowMatrix | None] = []
    for drawn in carry.drawn:
        left = _cross_covariance(carry, layer, Coordinates(drawn.A, drawn.processes))
        for part, other in zip(parts, drawn.earlier, strict=True):
            if part is not None and other is not None:
                left = _minus(left, part.times_transposed(other))
        parts.append(None if left is None else left.divided_by(drawn.own))
    return parts


def _own_covariance(
    carry: JointCarry, layer: Coordinates, projection: Projection, earlier: Sequence[RowMatrix | None]
) -> RowMatrix:
    """The covariance of a layer's processes, given the layers before."""
    size, processes = len(layer.processes), layer.processes
    pairs = [(c, d) for c in range(size) for d in range(c + 1) if (processes[c], processes[d]) in carry.pattern.places]
    covariance = _placed(_covariances(carry, layer, layer, pairs), [pairs, [(d, c) for c, d in pairs]], (size, size))
    if projection.between is None:
        residual = jnp.broadcast_to(projection.residual.mT, (*projection.residual.mT.shape[:-1], size))
        covariance = covariance + RowMatrix(residual, diagonal=True)
    else:
        covariance = covariance + RowMatrix(projection.between, diagonal=False)
    for part in earlier:
        covariance = covariance if part is None else covariance - part.times_transposed(part)
    return covariance


def _cross_covariance(carry: JointCarry, layer: Coordinates, other: Coordinates) -> RowMatrix | None:
    """Between a layer's values and those of an earlier one."""
    pairs = [
        (c, d)
        for c, i in enumerate(layer.processes)
        for d, j in enumerate(other.processes)
        if (i, j) in carry.pattern.places
    ]
    if not pairs:
        return None
    return _placed(_covariances(carry, layer, other, pairs), [pairs], (len(layer.processes), len(other.processes)))


def _placed(
    values: Float[Array, "*b N pairs"], places: Sequence[Sequence[tuple[int, int]]], shape: tuple[int, int]
) -> RowMatrix:
    """A matrix for every row from its entries, each at one or more places."""
    square = shape[0] == shape[1]
    if square and [list(pairs) for pairs in places] == [[(c, c) for c in range(shape[0])]] * len(places):
        return RowMatrix(values, diagonal=True)
    where = np.zeros((values.shape[-1], *shape), bool)
    for pairs in places:
        where[(np.arange(len(pairs)), *np.transpose(pairs))] = True
    chosen = jnp.asarray(where.reshape(len(where), -1), values.dtype)
    return RowMatrix(matmul(values, chosen).reshape(*values.shape[:-1], *shape), diagonal=False)


def _covariances(
    carry: JointCarry, layer: Coordinates, other: Coordinates, pairs: Sequence[tuple[int, int]]
) -> Float[Array, "*b N pairs"]:
    """aᵀ S_ij b for pairs of coordinates, of which the second belongs to the earlier process.

    The products with S are those of the rows b, which for the first layer carry no sample axis.
    """
    own, earlier = np.transpose(pairs)
    S = _taken(carry.covariance, [carry.pattern.places[layer.processes[c], other.processes[d]] for c, d in pairs])
    A, B = layer.A, other.A
    if A.shape[-3] == 1 and layer is other:
        return quadratic_forms(A[..., 0, :, :], 0.5 * (S + S.mT))
    if A.shape[-3] == 1 and B.shape[-3] == 1:
        return bilinear_forms(A[..., 0, :, :], S, B[..., 0, :, :])
    left, right = (rows if rows.shape[-3] == 1 else rows[..., index, :, :] for rows, index in ((A, own), (B, earlier)))
    return jnp.sum(matmul(right, S.mT) * left, axis=-1).mT


def _taken(array: Float[Array, "n *rest"], places: Sequence[int]) -> Float[Array, "k *rest"]:
    """The entries at these places; as a slice where they are one after the other, whose derivative is no scatter."""
    start, end = places[0], places[-1] + 1
    return array[start:end] if list(places) == list(range(start, end)) else array[np.array(places)]


def _minus(a: RowMatrix | None, b: RowMatrix) -> RowMatrix:
    return RowMatrix(-b.value, b.diagonal) if a is None else a - b
