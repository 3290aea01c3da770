"""A Gaussian over the inducing outputs of all layers, with any block pattern."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..covariances import PatchProcesses
from ..errors import InputError
from ..layers import gp_layers
from ..linalg import BlockPattern, log_diagonal
from ..parameters import AbstractParameter, LowerTriangular, Real, as_lower_triangular, as_real
from ..typing import Array, Float
from ._base import Layers
from ._joint import JointCarry
from ._joint_family import AbstractJointOutputs, AbstractWhitenedJoint
from ._latents import AbstractLatents
from ._mean_field import in_their_places, whitening_roots
from ._natural import natural_block_step
from ._patterns import block_pattern


class CoupledGaussian(AbstractJointOutputs):
    """q(v) = N(mean, RRᵀ) over the processes of all layers; R has a triangular block on the diagonal for every
    process (`root`) and a square one for every coupled pair of the pattern (`coupling`).

    A layer with fewer inducing outputs than the largest is filled up with standard normal numbers that nothing reads.
    """

    mean: AbstractParameter = eqx.field(converter=as_real)
    root: AbstractParameter = eqx.field(converter=as_lower_triangular)
    coupling: AbstractParameter = eqx.field(converter=as_real)
    pattern: BlockPattern = eqx.field(static=True)

    @classmethod
    def uncoupled(
        cls, mean: Float[Array, "n M"], root: Float[Array, "n M M"], pattern: BlockPattern
    ) -> CoupledGaussian:
        """With all blocks of the pattern below the diagonal at zero."""
        coupling = jnp.zeros((len(pattern.coupled), *root.shape[1:]))
        return cls(Real(mean), LowerTriangular(root), Real(coupling), pattern)

    def parameters(self):
        return self.mean, self.root, self.coupling

    def blocks(self) -> Float[Array, "K M M"]:
        """All blocks of R, in the order of the pattern."""
        return jnp.concatenate([self.root.value, self.coupling.value])

    def apply(self, noise):
        return self.pattern.apply(self.blocks(), noise)

    def natural_step(self, gradient, rate):
        """In the group of matrices of a closed pattern."""
        if not self.pattern.closed:
            missing = ", ".join(map(str, self.pattern.missing))
            raise InputError(
                "Natural gradients need a block pattern that is closed under multiplication: where (i, k) and (k, j) "
                f"are coupled, (i, j) must be. Add {missing}, or use the engine Gradient."
            )
        slope = jnp.concatenate([jnp.tril(gradient.root.raw), gradient.coupling.raw])
        mean, blocks = natural_block_step(self.pattern, self.mean.value, self.blocks(), gradient.mean.raw, slope, rate)
        size = self.pattern.size
        return CoupledGaussian(
            self.mean.with_value(mean),
            self.root.with_value(blocks[:size]),
            self.coupling.with_value(blocks[size:]),
            self.pattern,
        )


class Coupled(AbstractWhitenedJoint):
    """q(v) = N(m, RRᵀ) over all layers together, marginalised analytically [STAR, section 3].

    `structure` in `at_prior` is a word ("stripes-and-arrow", "fully-coupled", "layer-wise", "mean-field") or a boolean
    matrix over the processes of all layers. `widths` are the numbers of processes per layer, 0 where there are none.
    """

    outputs: CoupledGaussian
    others: tuple[AbstractLatents | None, ...]
    widths: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def at_prior(
        cls,
        layers: Layers,
        structure: str | BlockPattern | np.ndarray = "stripes-and-arrow",
        inner_scale: float = 1e-5,
        latents: Sequence[AbstractLatents] = (),
    ) -> Coupled:
        """Mean 0, covariance I scaled down in inner layers as for `MeanField`, nothing coupled yet."""
        widths = process_widths(layers)
        pattern = block_pattern(structure, [width for width in widths if width])
        roots = starting_roots(layers, widths, inner_scale)
        outputs = CoupledGaussian.uncoupled(jnp.zeros(roots.shape[:2]), roots, pattern)
        return cls(outputs, in_their_places(layers, latents), widths)

    def begin(self, layers):
        q = self.outputs
        starts = tuple(int(start) for start in np.cumsum([0, *self.widths]))
        return JointCarry(whitening_roots(layers), q.mean.value, q.pattern.gram_of(q.blocks()), q.pattern.gram, starts)

    def kl(self, layers, carry):
        """½ (|R|² + |m|² − M − log|RRᵀ|), against N(0, I)."""
        q = self.outputs
        R, m, C = q.root.value, q.mean.value, q.coupling.value
        return 0.5 * (jnp.sum(R**2) + jnp.sum(C**2) + jnp.sum(m**2) - m.size) - jnp.sum(log_diagonal(R))


def process_widths(layers: Layers) -> tuple[int, ...]:
    """The number of processes of every layer, 0 for layers without inducing outputs."""
    own = gp_layers(layers)
    for index, layer in own.items():
        if isinstance(layer.processes(), PatchProcesses):
            raise InputError(
                f"Layer {index} maps images to images, which can't be coupled with other layers yet. Use MeanField."
            )
    return tuple(own[index].num_blocks if index in own else 0 for index in range(len(layers)))


def starting_roots(layers: Layers, widths: Sequence[int], inner_scale: float) -> Float[Array, "n M M"]:
    """I for every process, scaled down in inner layers; what a layer lacks of the largest M is filled up with I."""
    sizes = [layer.own_inducing().num_inducing for layer in gp_layers(layers).values()]
    M, scales = max(sizes), [inner_scale] * (len(sizes) - 1) + [1.0]
    roots = [
        np.diag(np.where(np.arange(M) < size, scale, 1.0))
        for size, scale, width in zip(sizes, scales, filter(None, widths), strict=True)
        for _ in range(width)
    ]
    return jnp.asarray(np.stack(roots))
