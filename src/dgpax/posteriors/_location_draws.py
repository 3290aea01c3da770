"""Draws of the values of all layers at some inputs, each layer's the inducing locations of the next."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from ..covariances import IndependentProcesses, Kuu
from ..errors import InputError
from ..inducing import DrawnPoints, Points
from ..layers import GPLayer
from ..linalg import AbstractRoot, matmul, roots_together, solve_lower
from ..parameters import cast
from ..typing import Array, Float
from ._base import AbstractCarry, AbstractLayerwise, Layers, Moments
from ._mean_field import outputs_last, whitened_mean


class Frame(NamedTuple):
    """Coordinates v of a layer's values u = mean + R v, with RRᵀ = Kuu and the mean function at expected locations."""

    mean: Float[Array, "P M"]
    root: Float[Array, "Q M M"]

    @classmethod
    def at(cls, points: DrawnPoints, layer: GPLayer) -> Frame:
        """With these locations, which all draws share."""
        (root,) = roots_at([points], [layer])
        eye = jnp.eye(points.num_inducing, dtype=points.locations.dtype)
        return cls(mean_at(points, layer), root.matmul(eye[None]))

    def outputs(self, v: Float[Array, "*s P M"]) -> Float[Array, "*s P M"]:
        """The values u that belong to these coordinates."""
        return self.mean + matmul(self.root, v[..., None])[..., 0]

    def coordinates(self, u: Float[Array, "*s P M"]) -> Float[Array, "*s P M"]:
        """The coordinates of these values."""
        return matmul(solve_lower(self.root, jnp.eye(u.shape[-1], dtype=u.dtype)), (u - self.mean)[..., None])[..., 0]


class LocationCarry(AbstractCarry):
    """For every layer its inducing points and the root R of their Kuu, of every draw where they are drawn; what was
    drawn, and what was expected of it given the layers before, both whitened by R and less the layer's mean function;
    and `turns`, R⁻¹R̄, from coordinates by the root R̄ of their frame to whitened ones."""

    roots: tuple[AbstractRoot | None, ...]
    points: tuple[DrawnPoints, ...]
    whitened: tuple[Float[Array, "..."], ...]
    centres: tuple[Float[Array, "..."], ...]
    turns: tuple[Float[Array, "..."], ...]


class LocationDraws(AbstractLayerwise):
    """Point masses at draws of u_1 … u_L, u_l = f_l(u_{l−1}) and u_0 = z, with some leading axes [CU, section 4.2].

    All are kept by their coordinates v. `values` holds the processes of all layers one after the other, `widths` says
    how many each has. `centres` is what was expected of them given the layers before, `mean` what given nothing.
    """

    values: Float[Array, "*s n M"]
    centres: Float[Array, "*s n M"]
    mean: Float[Array, "n M"]
    widths: tuple[int, ...] = eqx.field(static=True)
    nugget: float = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """The leading axes of the draws."""
        return self.values.shape[:-2]

    def suitable_samples(self, wanted):
        """One for every draw, where there are several."""
        return self.shape[0] if self.shape else wanted

    def begin(self, layers):
        own = independent_gps(layers)
        frames = self._frames(own)
        values, centres = (
            [frame.outputs(self._of(index, v)) for index, frame in enumerate(frames)]
            for v in (self.values, self.centres)
        )
        points = [first_points(own[0], self.nugget), *(points_at(u, self.nugget) for u in values[:-1])]
        roots = roots_at(points, own)
        means = [mean_at(inducing, layer) for inducing, layer in zip(points, own, strict=True)]
        whitened, centres = (
            tuple(root.solve((u - mean)[..., None])[..., 0] for root, u, mean in zip(roots, given, means, strict=True))
            for given in (values, centres)
        )
        turns = tuple(root.solve(frame.root) for root, frame in zip(roots, frames, strict=True))
        return LocationCarry(tuple(roots), tuple(points), whitened, centres, turns)

    def inducing(self, index, layer, carry):
        return carry.points[index]

    def marginal(self, index, projection, carry):
        return outputs_last(whitened_mean(projection.A, carry.whitened[index]), projection.residual)

    def moments(self, index, A, carry):
        mean = whitened_mean(A, carry.whitened[index])
        return Moments(mean, jnp.zeros((*mean.shape, 0), mean.dtype))

    def latents(self, index, batch):
        raise InputError("Points as locations are for models without latent variables.")

    def kl(self, layers, carry):
        """Infinite: a point mass has no density."""
        return jnp.asarray(jnp.inf)

    def _frames(self, layers: list[GPLayer]) -> list[Frame]:
        """Layer by layer: the locations of one are the expected values of the one before."""
        points, frames = first_points(layers[0], self.nugget), []
        for index, layer in enumerate(layers):
            frames.append(Frame.at(points, layer))
            points = points_at(frames[-1].outputs(self._of(index, self.mean)), self.nugget)
        return frames

    def _of(self, index: int, values: Float[Array, "*s n M"]) -> Float[Array, "*s Q M"]:
        start = sum(self.widths[:index])
        return values[..., start : start + self.widths[index], :]


def first_points(layer: GPLayer, nugget: float) -> DrawnPoints:
    """The inducing points of the first layer, which aren't drawn."""
    own = layer.own_inducing()
    if not isinstance(own, Points) or own.locations.value.ndim != 2:
        raise InputError(
            "Points as locations need inducing points of shape (M, D) in the first layer, GPLayer(kernel, "
            f"inducing=Points(z)), which all outputs share; it has {type(own).__name__}."
        )
    return DrawnPoints(own.locations.value[None], nugget)


def points_at(u: Float[Array, "*s P M"], nugget: float) -> DrawnPoints:
    """Inducing points at the values of the layer before."""
    return DrawnPoints(u.mT[..., None, :, :], nugget)


def roots_at(points: list[DrawnPoints], layers: list[GPLayer]) -> list[AbstractRoot]:
    """The roots of Kuu of layers with these inducing points, in their dtype; with 64-bit numbers available Kuu is
    built and factorised in them."""
    parts = [(inducing, layer.kernel) for inducing, layer in zip(points, layers, strict=True)]
    dtype = jnp.result_type(*(leaf for leaf in jax.tree.leaves(parts) if eqx.is_inexact_array(leaf)))
    accurate = cast(parts, jnp.promote_types(dtype, jnp.result_type(float)))
    return roots_together([Kuu(inducing, kernel) for inducing, kernel in accurate], dtype)


def mean_at(inducing: DrawnPoints, layer: GPLayer) -> Float[Array, "*s P M"]:
    """The layer's mean function at its inducing points."""
    return layer.mean(inducing.locations[..., 0, :, :]).mT


def independent_gps(layers: Layers) -> list[GPLayer]:
    """The layers, if all of them are GPs with independent outputs, or an error that says what to do."""
    own = []
    for index, layer in enumerate(layers):
        if not isinstance(layer, GPLayer):
            raise InputError(
                f"Points as locations are for models whose layers are all GPs; layer {index} is "
                f"{type(layer).__name__}. Use another posterior, such as Variational('stripes-and-arrow')."
            )
        processes = layer.processes()
        if not isinstance(processes, IndependentProcesses) or processes.mixing is not None:
            raise InputError(
                f"Points as locations need independent outputs in every layer; layer {index} has "
                f"{type(layer.kernel).__name__}, which makes them depend on each other."
            )
        own.append(layer)
    return own
