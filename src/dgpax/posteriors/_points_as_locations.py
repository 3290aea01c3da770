"""A Gaussian over the values of all layers at the first layer's inducing points."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..errors import InputError
from ..inducing import DrawnPoints
from ..linalg import AbstractRoot, BlockPattern, matmul
from ..typing import Array, Float
from ._base import Layers
from ._coupled import CoupledGaussian
from ._joint import JointCarry
from ._joint_family import AbstractJoint
from ._latents import AbstractLatents
from ._location_draws import LocationCarry, LocationDraws, first_points, independent_gps, mean_at, roots_at
from ._patterns import block_pattern

NUGGET = 1e-6
SCATTER = 0.01


class PointsAsLocations(AbstractJoint):
    """q(u_1 … u_L) with u_l = f_l(u_{l−1}) and u_0 = z: the inducing points of a layer are the inducing locations of
    the next, and only z, of the first layer, is a parameter [CU, section 4.2]. Later layers' own are not used.

    A draw of all u says which functions belong together, so that layers may differ from draw to draw while their
    composition stays. Locations are random, so that all u are drawn in bounds and predictions, with a factorisation of
    Kuu per draw; they aren't whitened, for want of one Kuu: `outputs` is q(u) itself, mean functions included.
    `nugget` times the variance of f_l is the variance of the noise between f_l(u_{l−1}) and u_l, without which u would
    have to move as smoothly as the prior from draw to draw. Train it with the engine `Gradient`: natural steps follow
    the noise of its bound.
    """

    outputs: CoupledGaussian
    widths: tuple[int, ...] = eqx.field(static=True)
    nugget: float = eqx.field(static=True, default=NUGGET)

    @classmethod
    def at_prior(
        cls,
        layers: Layers,
        structure: str | BlockPattern | np.ndarray = "fully-coupled",
        scale: float = 1e-3,
        latents: Sequence[AbstractLatents] = (),
        nugget: float = NUGGET,
    ) -> PointsAsLocations:
        """Every layer at its mean function, with standard deviations of `scale`, and inner ones scattered by 0.01 so
        that locations never coincide. `structure` is as for `Coupled`; the paper's is "mean-field"."""
        own = independent_gps(layers)
        widths = tuple(layer.num_outputs for layer in own)
        pattern = block_pattern(structure, widths)
        points, means, rng = first_points(own[0], nugget), [], np.random.default_rng(0)
        for layer in own:
            shape = (layer.num_outputs, points.num_inducing)
            scatter = 0.0 if layer is own[-1] else SCATTER * rng.normal(size=shape)
            means.append(jnp.broadcast_to(mean_at(points, layer), shape) + scatter)
            points = DrawnPoints(means[-1].mT[None], nugget)
        roots = scale * jnp.tile(jnp.eye(points.num_inducing), (pattern.size, 1, 1))
        outputs = CoupledGaussian.uncoupled(jnp.concatenate(means), roots, pattern)
        return cls(outputs, widths, nugget)

    def begin(self, layers):
        """The first layer, whose locations are known; the others have to be drawn."""
        first = independent_gps(layers)[0]
        points = self.inducing(0, first)
        (root,) = roots_at([points], [first])
        mean = root.solve((self.outputs.mean.value[self._own(0)] - mean_at(points, first))[..., None])[..., 0]
        spread = root.solve(self._own_root(0))
        pattern = BlockPattern.from_mask(np.tril(np.ones((self.widths[0],) * 2, bool)))
        i, j = np.transpose(pattern.pairs)
        starts = (0, *[self.widths[0]] * len(layers))
        return JointCarry((root, *[None] * (len(layers) - 1)), mean, matmul(spread[i], spread[j].mT), pattern, starts)

    def inducing(self, index, layer):
        if index > 0:
            raise _random_locations(index)
        return first_points(layer, self.nugget)

    def tractable(self, key, shape):
        return self if len(self.widths) == 1 else self.layerwise(key, shape)

    def layerwise(self, key, shape):
        q = self.outputs
        noise = jr.normal(key, (*q.mean.shape, int(np.prod(shape))), q.mean.dtype)
        layer = np.repeat(np.arange(len(self.widths)), self.widths)
        across = np.array([layer[i] != layer[j] for i, j in q.pattern.pairs])[:, None, None]
        centres = q.mean.value[..., None] + q.pattern.apply(jnp.where(across, q.blocks(), 0.0), noise)
        values = centres + q.pattern.apply(jnp.where(across, 0.0, q.blocks()), noise)

        values, centres = (jnp.moveaxis(u, -1, 0).reshape(*shape, *q.mean.shape) for u in (values, centres))
        return LocationDraws(values, centres, self.widths, self.nugget)

    def latents(self, index, batch):
        raise InputError("Points as locations are for models without latent variables.")

    def kl(self, layers, carry):
        """E[log q(u) − Σ_l log p(u_l | u_{l−1})] [CU, eq. 21], an average over the draws of the carry.

        Given the layers before, u_l is Gaussian under q as under p, so that only what a layer depends on is drawn:
        with N(c, SSᵀ) for u_l less its prior mean, RRᵀ = Kuu, ½ (|R⁻¹S|² + |R⁻¹c|² − M) + log|R| − log|S|.
        """
        centres = carry.centres if isinstance(carry, LocationCarry) else (carry.mean,)
        if len(centres) < len(self.widths):
            raise _random_locations(1)
        q = self.outputs
        log_diagonal = jnp.log(jnp.abs(jnp.diagonal(q.root.value, axis1=-2, axis2=-1)))
        total = -jnp.sum(log_diagonal) - 0.5 * q.mean.value.size
        for index, centre in enumerate(centres):
            total = total + _expected(carry.root(index), self._own_root(index), centre)
        return total

    def _own(self, index: int) -> slice:
        start = sum(self.widths[:index])
        return slice(start, start + self.widths[index])

    def _own_root(self, index: int) -> Float[Array, "Q M K"]:
        """The root of a layer's u given the layers before: a row of blocks for every process."""
        q, own, M = self.outputs, self._own(index), self.outputs.mean.shape[-1]
        blocks = jnp.zeros((q.pattern.size, q.pattern.size, M, M), q.mean.dtype)
        blocks = blocks.at[tuple(np.transpose(q.pattern.pairs))].set(q.blocks())[own, own]
        return jnp.swapaxes(blocks, 1, 2).reshape(len(blocks), M, -1)


def _expected(root: AbstractRoot, spread: Float[Array, "Q M K"], centre: Float[Array, "*s Q M"]) -> Float[Array, ""]:
    """½ (|R⁻¹S|² + |R⁻¹c|²) + log|R|, summed over processes and averaged over draws."""
    trace = jnp.sum(root.solve(spread) ** 2, axis=(-3, -2, -1))
    log_determinant = jnp.sum(jnp.broadcast_to(root.logdet(), centre.shape[:-1]), axis=-1)
    return 0.5 * (jnp.mean(trace) + jnp.mean(jnp.sum(centre**2, axis=(-2, -1)))) + jnp.mean(log_determinant)


def _random_locations(index: int) -> InputError:
    return InputError(
        f"The inducing locations of layer {index} are random under points as locations. Draw them first: "
        "posterior.tractable(key, (num_samples,)), and use what it returns in its place."
    )
