"""A Gaussian over the values of all layers at the first layer's inducing points."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..errors import InputError
from ..linalg import BlockPattern, log_diagonal, matmul, safe_cholesky
from ..parameters import LowerTriangular, Real
from ..typing import Array, Float
from ._base import Layers
from ._coupled import CoupledGaussian
from ._joint import JointCarry
from ._joint_family import AbstractJoint
from ._latents import AbstractLatents
from ._location_draws import Frame, LocationCarry, LocationDraws, first_points, independent_gps, points_at, roots_at
from ._patterns import block_pattern

NUGGET = 1e-6
SCATTER = 0.01


class PointsAsLocations(AbstractJoint):
    """q(u_1 … u_L) with u_l = f_l(u_{l−1}) and u_0 = z: the inducing points of a layer are the inducing locations of
    the next, and only z, of the first layer, is a parameter [CU, section 4.2]. Later layers' own are not used.

    A draw of all u says which functions belong together, so that layers may differ from draw to draw while their
    composition stays. Locations are random, so that all u are drawn in bounds and predictions, with a factorisation of
    Kuu per draw. The Gaussian is held in coordinates v (`outputs`) that are whitened by the prior at expected
    locations: u_l = μ_l(ū_{l−1}) + R_l v_l with ū = E u and R_l R_lᵀ = Kuu(ū_{l−1}), so that q(u) is as Gaussian as
    q(v), and the steps of an optimiser are smooth functions. (In u itself the bound is a million times as steep across
    smooth functions as along them.) `nugget` times the variance of f_l is the variance of the noise between
    f_l(u_{l−1}) and u_l, without which u would have to move as smoothly as the prior from draw to draw. Train it with
    the engine `Gradient`: natural steps follow the noise of its bound.
    """

    outputs: CoupledGaussian
    widths: tuple[int, ...] = eqx.field(static=True)
    nugget: float = eqx.field(static=True, default=NUGGET)

    @classmethod
    def at_prior(
        cls,
        layers: Layers,
        structure: str | BlockPattern | np.ndarray = "fully-coupled",
        inner_scale: float = 1e-5,
        latents: Sequence[AbstractLatents] = (),
        nugget: float = NUGGET,
    ) -> PointsAsLocations:
        """The last layer at its prior, inner ones near their mean functions: off by a hundredth of the prior, so that
        locations never coincide, with roots scaled down by `inner_scale`. `structure` is as for `Coupled`; the paper's
        is "mean-field"."""
        own = independent_gps(layers)
        widths = tuple(layer.num_outputs for layer in own)
        pattern = block_pattern(structure, widths)
        inner, M = sum(widths[:-1]), first_points(own[0], nugget).num_inducing
        mean = SCATTER * np.random.default_rng(0).normal(size=(pattern.size, M))
        mean[inner:] = 0.0
        scales = np.where(np.arange(pattern.size) < inner, inner_scale, 1.0)
        roots = jnp.asarray(scales[:, None, None] * np.eye(M))
        return cls(CoupledGaussian.uncoupled(jnp.asarray(mean), roots, pattern), widths, nugget)

    @classmethod
    def matching(
        cls, layers: Layers, draws: Sequence[Float[Array, "S M _"]], nugget: float = NUGGET
    ) -> PointsAsLocations:
        """The fully coupled one with the moments of draws of all layers' values at the first layer's inducing points
        z, as `layer_draws(fitted, z).outputs` has them: a start from the fit of another family. There must be more
        draws than values in a draw."""
        own = independent_gps(layers)
        widths, M = tuple(layer.num_outputs for layer in own), first_points(own[0], nugget).num_inducing
        if len(draws[0]) <= M * sum(widths):
            raise InputError(
                f"PointsAsLocations.matching(draws=...) needs more than {M * sum(widths)} draws for {sum(widths)} "
                f"outputs at {M} points; got {len(draws[0])}."
            )
        points, coordinates = first_points(own[0], nugget), []
        for layer, given in zip(own, draws, strict=True):
            u, frame = given.mT, Frame.at(points, layer)
            coordinates.append(frame.coordinates(u))
            points = points_at(jnp.mean(u, axis=0), nugget)
        v = jnp.concatenate(coordinates, axis=1)
        mean, pattern = jnp.mean(v, axis=0), block_pattern("fully-coupled", widths)
        rest = (v - mean).reshape(len(v), -1)
        root = safe_cholesky(matmul(rest.T, rest) / (len(v) - 1)).factor
        blocks = jnp.swapaxes(root.reshape(*mean.shape, *mean.shape), 1, 2)[tuple(np.transpose(pattern.pairs))]
        own_blocks, coupling = LowerTriangular(blocks[: pattern.size]), Real(blocks[pattern.size :])
        return cls(CoupledGaussian(Real(mean), own_blocks, coupling, pattern), widths, nugget)

    def begin(self, layers):
        """The first layer, whose locations are known; the others have to be drawn."""
        first = independent_gps(layers)[0]
        roots = roots_at([first_points(first, self.nugget)], [first])
        own = self._own_root(0)
        pattern = BlockPattern.from_mask(np.tril(np.ones((self.widths[0],) * 2, bool)))
        i, j = np.transpose(pattern.pairs)
        starts = (0, *[self.widths[0]] * len(layers))
        covariance = matmul(own[i], own[j].mT)
        mean = self.outputs.mean.value[self._own(0)]
        return JointCarry((*roots, *[None] * (len(layers) - 1)), mean, covariance, pattern, starts)

    def inducing(self, index, layer, carry):
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

        values, centres = (jnp.moveaxis(v, -1, 0).reshape(*shape, *q.mean.shape) for v in (values, centres))
        return LocationDraws(values, centres, q.mean.value, self.widths, self.nugget)

    def latents(self, index, batch):
        raise InputError("Points as locations are for models without latent variables.")

    def kl(self, layers, carry):
        """E[log q(u) − Σ_l log p(u_l | u_{l−1})] [CU, eq. 21], an average over the draws of the carry.

        Given the layers before, u_l is Gaussian under q as under p, so that only what a layer depends on is drawn:
        whitened by Kuu at the drawn locations it is N(c, TSSᵀTᵀ) under q with the triangular T = R⁻¹R̄, the change from
        the root of its frame to that of Kuu. This makes ½ (|TS|² + |c|² − M) − log|T| − log|S|.
        """
        M = self.outputs.mean.shape[-1]
        if isinstance(carry, LocationCarry):
            centres, turns = carry.centres, carry.turns
        else:
            centres, turns = (carry.mean,), (jnp.eye(M, dtype=carry.mean.dtype)[None],)
        if len(centres) < len(self.widths):
            raise _random_locations(1)
        q = self.outputs
        total = -jnp.sum(log_diagonal(q.root.value)) - 0.5 * q.mean.value.size
        for index, (centre, turn) in enumerate(zip(centres, turns, strict=True)):
            total = total + _expected(turn, self._own_root(index), centre)
        return total

    def _own(self, index: int) -> slice:
        start = sum(self.widths[:index])
        return slice(start, start + self.widths[index])

    def _own_root(self, index: int) -> Float[Array, "Q M K"]:
        """The root of a layer's v given the layers before: a row of blocks for every process."""
        q, own, M = self.outputs, self._own(index), self.outputs.mean.shape[-1]
        blocks = jnp.zeros((q.pattern.size, q.pattern.size, M, M), q.mean.dtype)
        blocks = blocks.at[tuple(np.transpose(q.pattern.pairs))].set(q.blocks())[own, own]
        return jnp.swapaxes(blocks, 1, 2).reshape(len(blocks), M, -1)


def _expected(
    turn: Float[Array, "*t R M M"], own: Float[Array, "Q M K"], centre: Float[Array, "*s Q M"]
) -> Float[Array, ""]:
    """½ (|TS|² + |c|²) − log|T|, summed over processes and averaged over draws."""
    trace = jnp.sum(matmul(turn, own) ** 2, axis=(-3, -2, -1))
    log_diagonal = jnp.sum(jnp.log(jnp.diagonal(turn, axis1=-2, axis2=-1)), axis=-1)
    log_determinant = jnp.sum(jnp.broadcast_to(log_diagonal, centre.shape[:-1]), axis=-1)
    return 0.5 * (jnp.mean(trace) + jnp.mean(jnp.sum(centre**2, axis=(-2, -1)))) - jnp.mean(log_determinant)


def _random_locations(index: int) -> InputError:
    return InputError(
        f"The inducing locations of layer {index} are random under points as locations. Draw them first: "
        "posterior.tractable(key, (num_samples,)), and use what it returns in its place."
    )
