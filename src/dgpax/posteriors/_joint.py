"""One Gaussian over the inducing outputs of all layers: what every row's layers are, given those before them.

For a row n, f_l = A_l v_l + rest with v jointly Gaussian, so that all f_1 … f_L of a row would be jointly Gaussian if
the A_l were given. Layer by layer they are: the Cholesky factor of their covariance is extended by a layer's rows
after its inputs were drawn, which is Theorem 1 of STAR without its inverses. The factor is held by columns, an array
over the processes of a layer each; a column that is zero by the block pattern is None and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..conditional import Projection
from ..distributions import Gaussian, GaussianOverOutputs, safe_sqrt
from ..linalg import AbstractRoot, BlockPattern, matmul
from ..typing import Array, Float
from ._base import AbstractCarry

Column = Float[Array, "*b C N"] | None
"""A column of the factor for the processes of one layer, or None where it is zero by structure."""


class DrawnLayer(eqx.Module):
    """What is remembered of a layer that was drawn: its projections, its rows of the factor, its noise.

    `mask` says which entries of the columns may differ from zero, [C, columns].
    """

    A: Float[Array, "*b Q N M"]
    blocks: tuple[int, ...] = eqx.field(static=True)
    columns: tuple[Column, ...]
    mask: tuple[tuple[bool, ...], ...] = eqx.field(static=True)
    noise: Float[Array, "*c C N"]


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


class Conditional(NamedTuple):
    """A layer's processes at every row, given the layers before; `mask` and `own` are the entries that may not be
    zero of `columns` and `covariance`."""

    mean: Float[Array, "*b C N"]
    columns: list[Column]
    mask: np.ndarray
    covariance: Float[Array, "*b C C N"]
    own: np.ndarray


def layer_given_others(index: int, projection: Projection, carry: JointCarry) -> Conditional:
    """q(f_l | f_1 … f_{l−1}) for every row [STAR, Theorem 1]."""
    A = padded(projection.A, carry.mean.shape[-1])
    blocks = _blocks(index, A, carry)
    covariance, own = _covariances(carry, A, blocks, A, blocks)
    if projection.between is None:
        eye = jnp.eye(len(blocks), dtype=A.dtype)[..., None]
        covariance = covariance + eye * projection.residual[..., None, :, :]
    else:
        covariance, own = covariance + jnp.moveaxis(projection.between, -3, -1), np.ones_like(own)
    columns, mask = _given_earlier(carry, A, blocks)
    mean = matmul(A, carry.mean[np.array(blocks)][..., None])[..., 0]
    noise = [layer.noise[..., c, :] for layer in carry.drawn for c in range(len(layer.blocks))]
    for column, xi in zip(columns, noise, strict=True):
        if column is not None:
            mean = mean + column * xi[..., None, :]
            covariance = covariance - column[..., :, None, :] * column[..., None, :, :]
    own = own | (mask.astype(int) @ mask.T.astype(int) > 0)
    return Conditional(mean, columns, mask, covariance, own)


def marginal_of(given: Conditional) -> Gaussian:
    """Every process by itself, [..., N, C]."""
    variance = jnp.einsum("...ccn->...nc", given.covariance)
    shape = jnp.broadcast_shapes(given.mean.mT.shape, variance.shape)
    return Gaussian(jnp.broadcast_to(given.mean.mT, shape), jnp.broadcast_to(jnp.maximum(variance, 0.0), shape))


def joint_of(given: Conditional) -> GaussianOverOutputs:
    """The processes of a row together."""
    q = marginal_of(given)
    covariance = jnp.moveaxis(given.covariance, -1, -3)
    return GaussianOverOutputs(q.mean, jnp.broadcast_to(covariance, (*q.mean.shape, q.mean.shape[-1])))


def draw_from(
    index: int, projection: Projection, noise: Float[Array, "*b N C"], carry: JointCarry
) -> tuple[Float[Array, "*b N C"], JointCarry]:
    """A draw of the layer's processes at every row, remembered for the layers behind it."""
    given = layer_given_others(index, projection, carry)
    columns, own = _cholesky(given.covariance, given.own)
    f, xi = given.mean, noise.mT
    for d, column in enumerate(columns):
        f = f + column * xi[..., d, None, :]
    mask = np.concatenate([given.mask, own], axis=1)
    A = padded(projection.A, carry.mean.shape[-1])
    layer = DrawnLayer(A, _blocks(index, A, carry), (*given.columns, *columns), _static(mask), xi)
    drawn = (*carry.drawn, layer)
    remembered = JointCarry(carry.roots, carry.mean, carry.covariance, carry.pattern, carry.starts, drawn)
    return jnp.broadcast_to(f.mT, noise.shape), remembered


def padded(A: Float[Array, "*b K"], size: int) -> Float[Array, "*b M"]:
    """With zeros where a layer has fewer inducing outputs than the largest."""
    missing = size - A.shape[-1]
    return A if missing == 0 else jnp.pad(A, [(0, 0)] * (A.ndim - 1) + [(0, missing)])


def _blocks(index: int, A: Float[Array, "*b Q N M"], carry: JointCarry) -> tuple[int, ...]:
    """The process behind every coordinate: one each, or the same for all outputs that share inducing variables."""
    first, behind = carry.starts[index], carry.starts[index + 1]
    return tuple(range(first, behind)) if behind - first > 1 else (first,) * A.shape[-3]


def _given_earlier(carry: JointCarry, A, blocks: tuple[int, ...]) -> tuple[list[Column], np.ndarray]:
    """The columns that belong to the layers before: Λ_d = (C_d − Σ_{k<d} Λ_k λ_dk) / λ_dd, for every coordinate d."""
    columns: list[Column] = []
    mask = np.zeros((len(blocks), 0), bool)
    for layer in carry.drawn:
        cross, there = _covariances(carry, A, blocks, layer.A, layer.blocks)
        for d in range(len(layer.blocks)):
            rows = np.array(layer.mask[d])
            terms = [k for k in range(len(columns)) if rows[k] and columns[k] is not None]
            own = there[:, d] | mask[:, terms].any(axis=1)
            mask = np.concatenate([mask, own[:, None]], axis=1)
            column = None
            if own.any():
                column = cross[..., :, d, :]
                for k in terms:
                    column = column - columns[k] * layer.columns[k][..., d, None, :]
                column = _divide(column, layer.columns[len(columns)][..., d, None, :])
            columns.append(column)
    return columns, mask


def _cholesky(covariance: Float[Array, "*b C C N"], own: np.ndarray) -> tuple[list[Float[Array, "..."]], np.ndarray]:
    """The columns of the factor for every row n by itself, and where they may not be zero."""
    size = len(own)
    columns: list[Float[Array, "..."]] = []
    mask = np.zeros((size, size), bool)
    for d in range(size):
        column = covariance[..., :, d, :]
        terms = [k for k in range(d) if mask[d, k]]
        for k in terms:
            column = column - columns[k] * columns[k][..., d, None, :]
        mask[d:, d] = (own[:, d] | mask[:, terms].any(axis=1))[d:]
        diagonal = safe_sqrt(jnp.maximum(column[..., d, None, :], 0.0))
        below = _divide(column, diagonal) * (np.arange(size) > d)[:, None]
        columns.append(below + diagonal * (np.arange(size) == d)[:, None])
    return columns, mask


def _covariances(
    carry: JointCarry, A, blocks: Sequence[int], B, others: Sequence[int]
) -> tuple[Float[Array, "*b C D N"], np.ndarray]:
    """aᵀ S_ij b for all pairs of coordinates whose block S_ij is there, zero elsewhere, and where they are.

    The products with S are those of the rows b of the earlier layer, which for the first layer carry no sample axis.
    """
    place = {pair: k for k, pair in enumerate(carry.pattern.pairs)}
    pairs = [(c, d) for c, i in enumerate(blocks) for d, j in enumerate(others) if (i, j) in place]
    if A is B:
        pairs = [(c, d) for c, d in pairs if c >= d]
    there = np.zeros((len(blocks), len(others)), bool)
    shape = (*jnp.broadcast_shapes(A.shape[:-3], B.shape[:-3]), *there.shape, A.shape[-2])
    if not pairs:
        return jnp.zeros(shape, A.dtype), there
    own, earlier = np.transpose(pairs)
    there[own, earlier] = True
    S = carry.covariance[np.array([place[blocks[c], others[d]] for c, d in pairs])]
    left = A if A.shape[-3] == 1 else A[..., own, :, :]
    right = B if B.shape[-3] == 1 else B[..., earlier, :, :]
    values = jnp.sum(matmul(right, S.mT) * left, axis=-1)
    entries = jnp.zeros(shape, A.dtype).at[..., own, earlier, :].set(values)
    if A is B:
        there |= there.T
        entries = entries.at[..., earlier, own, :].set(values)
    return entries, there


def _divide(a, b):
    """0 where b is: a coordinate without any spread left has nothing to tell."""
    positive = b > 0
    return jnp.where(positive, a / jnp.where(positive, b, 1.0), 0.0)


def _static(mask: np.ndarray) -> tuple[tuple[bool, ...], ...]:
    return tuple(tuple(map(bool, row)) for row in mask)
