"""Inducing outputs of a layer that depend on those of the layer before: a Gaussian Markov chain over layers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..linalg import log_diagonal
from ..parameters import LowerTriangular, Real
from ._base import Layers
from ._chain_gaussian import ChainGaussian
from ._coupled import process_widths, starting_roots
from ._joint import JointCarry
from ._joint_family import AbstractWhitenedJoint
from ._latents import AbstractLatents
from ._mean_field import in_their_places, whitening_roots


class Chain(AbstractWhitenedJoint):
    """A chain over the layers, marginalised analytically.

    Given a row's values of all earlier layers, a layer's are Gaussian: a Kalman filter over v_1 → v_2 → … per row, and
    Theorem 1 of STAR for the chain's covariance, which is how it is computed. (The recursion of [CU, eqs. 16-17]
    forgets all but the last layer: it is exact for two layers only.) `widths` are the numbers of processes per layer,
    0 where there are none.
    """

    outputs: ChainGaussian
    others: tuple[AbstractLatents | None, ...]
    widths: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def at_prior(cls, layers: Layers, inner_scale: float = 1e-5, latents: Sequence[AbstractLatents] = ()) -> Chain:
        """Mean 0, covariance I scaled down in inner layers as for `MeanField`, no layer depends on another yet."""
        widths = process_widths(layers)
        own = tuple(filter(None, widths))
        roots = starting_roots(layers, widths, inner_scale)
        num_blocks = sum(a * b for a, b in pairwise(own))
        outputs = ChainGaussian(
            Real(jnp.zeros(roots.shape[:2])),
            LowerTriangular(roots),
            Real(jnp.zeros((num_blocks, *roots.shape[1:]))),
            own,
        )
        return cls(outputs, in_their_places(layers, latents), widths)

    def begin(self, layers):
        starts = tuple(int(start) for start in np.cumsum([0, *self.widths]))
        pattern, covariance = self.outputs.covariance()
        return JointCarry(whitening_roots(layers), self.outputs.mean.value, covariance, pattern, starts)

    def kl(self, layers, carry):
        """½ (tr S + |m|² − M) − Σ log |C_ii|, against N(0, I)."""
        q = self.outputs
        trace = sum((jnp.einsum("iiaa->", S) for S in q.own_covariances()), jnp.zeros((), q.mean.dtype))
        return 0.5 * (trace + jnp.sum(q.mean.value**2) - q.mean.value.size) - jnp.sum(log_diagonal(q.root.value))
