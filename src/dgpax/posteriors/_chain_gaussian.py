"""Gaussian Markov chains over the layers' processes: covariances, draws and natural-gradient steps."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..linalg import BlockPattern, einsum, matmul, safe_cholesky, solve_lower, solve_lower_transposed
from ..parameters import AbstractParameter, as_lower_triangular, as_real
from ..typing import Array, Float
from ._joint_family import AbstractJointOutputs
from ._natural import LARGEST_MOVE, natural_step


class Link(NamedTuple):
    """The processes of one layer: N(0, root rootᵀ) given the layer before, which comes in through `transition`."""

    root: Float[Array, "Q M M"]
    transition: Float[Array, "Q P M M"]


class ChainGaussian(AbstractJointOutputs):
    """q(v_1) Π_l q(v_l | v_{l−1}): v_l = m_l + B_l (v_{l−1} − m_{l−1}) + C_l ξ_l [CU, eq. 14].

    C (`root`) has a triangular block for every process; B (`transition`) a square one for every pair of a process and
    one of the layer before, layer by layer, the later process varying slowest. So the number of parameters is linear
    in the number of layers. `widths` are the numbers of processes of the GP layers.
    """

    mean: AbstractParameter = eqx.field(converter=as_real)
    root: AbstractParameter = eqx.field(converter=as_lower_triangular)
    transition: AbstractParameter = eqx.field(converter=as_real)
    widths: tuple[int, ...] = eqx.field(static=True)

    def parameters(self):
        return self.mean, self.root, self.transition

    def links(self) -> list[Link]:
        """Layer by layer."""
        roots = self._by_layer(self.root.value)
        sizes = [width * before for before, width in self._steps()]
        blocks = jnp.split(self.transition.value, np.cumsum(sizes)[:-1])
        return [
            Link(root, block.reshape(width, before, *block.shape[1:]))
            for root, block, (before, width) in zip(roots, blocks, self._steps(), strict=True)
        ]

    def own_covariances(self) -> list[Float[Array, "Q Q M M"]]:
        """S_ll = B_l S_{l−1,l−1} B_lᵀ + C_l C_lᵀ of every layer."""
        found, last = [], jnp.zeros((0, 0, *self.root.shape[1:]), self.root.dtype)
        for link in self.links():
            last = _own(link, einsum("ikab,kjbc->ijac", link.transition, last))
            found.append(last)
        return found

    def covariance(self) -> tuple[BlockPattern, Float[Array, "J M M"]]:
        """The blocks of S that aren't zero: S_{l,l'} = B_l S_{l−1,l'} for l' < l."""
        size, M = sum(self.widths), self.root.shape[-1]
        rows, last = [], jnp.zeros((0, 0, M, M), self.root.dtype)
        for link in self.links():
            earlier = einsum("ikab,kjbc->ijac", link.transition, last)
            before = link.transition.shape[1]
            last = jnp.concatenate([earlier, _own(link, earlier[:, earlier.shape[1] - before :])], axis=1)
            rows.append(jnp.pad(last, [(0, 0), (0, size - last.shape[1]), (0, 0), (0, 0)]))
        layer = np.repeat(np.arange(len(self.widths)), self.widths)
        pattern = BlockPattern.from_mask(np.tril((layer[:, None] > 0) | np.eye(size, dtype=bool)))
        i, j = np.transpose(pattern.pairs)
        return pattern, jnp.concatenate(rows)[i, j]

    def apply(self, noise: Float[Array, "n M K"]) -> Float[Array, "n M K"]:
        """R ξ with S = RRᵀ: what standard normal numbers become, without the mean."""
        found, last = [], jnp.zeros((0, *noise.shape[1:]), noise.dtype)
        for link, xi in zip(self.links(), self._by_layer(noise), strict=True):
            last = matmul(link.root, xi) + einsum("ikab,kbc->iac", link.transition, last)
            found.append(last)
        return jnp.concatenate(found)

    def apply_transposed(self, slope: Float[Array, "n M K"]) -> Float[Array, "n M K"]:
        """Rᵀ g, from the last layer to the first."""
        found, behind = [], 0.0
        for link, own in zip(reversed(self.links()), reversed(self._by_layer(slope)), strict=True):
            whole = own + behind
            found.append(matmul(link.root.mT, whole))
            behind = einsum("ikab,iac->kbc", link.transition, whole)
        return jnp.concatenate(found[::-1])

    def natural_step(self, gradient, rate):
        """Layer by layer, in coordinates in which the Fisher information is I up to the diagonal of C.

        C takes the step of `natural_step`. B = C D S^(−½), S that of the layer before: D moves by −rate·Cᵀ G S^(−½)
        for the slope G by B, since the slopes of ln q by B, C and m are uncorrelated, those of different layers too.
        m ← m − rate·S g with the new S. Steps of B and m are at most one standard deviation on average.
        """
        zero, own = jnp.zeros_like(self.mean.value), jnp.tril(gradient.root.raw)
        _, root = natural_step(zero, self.root.value, zero, own, rate)
        moved = [
            _transition_step(link, before, slope, rate).reshape(-1, *self.root.shape[1:])
            for link, slope, before in zip(
                self.links(),
                _with_transition(self, gradient.transition.raw).links(),
                [jnp.zeros((0, 0, *self.root.shape[1:]), self.root.dtype), *self.own_covariances()[:-1]],
                strict=True,
            )
        ]
        transition = self.transition.with_value(jnp.concatenate(moved))
        new = ChainGaussian(self.mean, self.root.with_value(root), transition, self.widths)
        move = rate * new.apply_transposed(gradient.mean.raw[..., None])
        mean = self.mean.value - new.apply(_at_most_one(move))[..., 0]
        return eqx.tree_at(lambda q: q.mean, new, self.mean.with_value(mean))

    def _steps(self) -> list[tuple[int, int]]:
        """The widths of the layer before, and of the layer itself."""
        return list(zip((0, *self.widths[:-1]), self.widths, strict=True))

    def _by_layer(self, values: Float[Array, "n *s"]) -> list[Float[Array, "Q *s"]]:
        return jnp.split(values, np.cumsum(self.widths)[:-1])


def _own(link: Link, with_before: Float[Array, "Q P M M"]) -> Float[Array, "Q Q M M"]:
    """S_ll, from S_{l,l−1}."""
    spread = einsum("ikab,jkcb->ijac", with_before, link.transition)
    own = np.arange(len(link.root))
    return spread.at[own, own].add(matmul(link.root, link.root.mT))


def _with_transition(q: ChainGaussian, transition: Float[Array, "K M M"]) -> ChainGaussian:
    return eqx.tree_at(lambda q: q.transition, q, q.transition.with_value(transition))


def _transition_step(link: Link, before: Float[Array, "P P M M"], slope: Link, rate) -> Float[Array, "Q P M M"]:
    Q, P, M = link.transition.shape[:3]
    if P == 0:
        return link.transition
    wide = jnp.moveaxis(slope.transition, 1, 2).reshape(Q, M, P * M)
    root = safe_cholesky(jnp.moveaxis(before, 1, 2).reshape(P * M, P * M)).factor
    local = rate * matmul(link.root.mT, solve_lower(root, wide.mT).mT)
    local = local / jnp.maximum(jnp.sqrt(jnp.mean(jnp.sum(local**2, axis=-1), axis=-1, keepdims=True)), 1.0)[..., None]
    move = matmul(link.root, solve_lower_transposed(root, local.mT).mT)
    return link.transition - jnp.moveaxis(move.reshape(Q, M, P, M), 2, 1)


def _at_most_one(move: Float[Array, "n M 1"]) -> Float[Array, "n M 1"]:
    length = jnp.sqrt(jnp.mean(move**2))
    return move * (LARGEST_MOVE / jnp.maximum(length, LARGEST_MOVE))
