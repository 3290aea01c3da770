"""Draws of the values of all layers at some inputs, each layer's the inducing locations of the next."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from ..covariances import IndependentProcesses, Kuu
from ..errors import InputError
from ..inducing import DrawnPoints, Points
from ..layers import GPLayer
from ..linalg import AbstractRoot, roots_together
from ..parameters import cast
from ..typing import Array, Float
from ._base import AbstractCarry, AbstractLayerwise, Layers, Moments
from ._mean_field import outputs_last, whitened_mean


class LocationCarry(AbstractCarry):
    """For every layer the root of Kuu, of every draw where locations are drawn; what was drawn, and what was expected
    of it given the layers before, both whitened and less the layer's mean function."""

    roots: tuple[AbstractRoot | None, ...]
    whitened: tuple[Float[Array, "..."], ...]
    centres: tuple[Float[Array, "..."], ...]


class LocationDraws(AbstractLayerwise):
    """Point masses at draws of u_1 … u_L, u_l = f_l(u_{l−1}) and u_0 = z, with some leading axes [CU, section 4.2].

    `values` holds the processes of all layers one after the other, `widths` says how many each has. `centres` is what
    was expected of them given the layers before.
    """

    values: Float[Array, "*s n M"]
    centres: Float[Array, "*s n M"]
    widths: tuple[int, ...] = eqx.field(static=True)
    nugget: float = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """The leading axes of the draws."""
        return self.values.shape[:-2]

    def begin(self, layers):
        own = independent_gps(layers)
        points = [self.inducing(index, layer) for index, layer in enumerate(own)]
        roots = roots_at(points, own)
        means = [mean_at(inducing, layer) for inducing, layer in zip(points, own, strict=True)]
        whitened, centres = (
            tuple(
                root.solve((self._of(index, values) - mean)[..., None])[..., 0]
                for index, (root, mean) in enumerate(zip(roots, means, strict=True))
            )
            for values in (self.values, self.centres)
        )
        return LocationCarry(tuple(roots), whitened, centres)

    def inducing(self, index, layer):
        if index == 0:
            return first_points(layer, self.nugget)
        return DrawnPoints(self._of(index - 1, self.values).mT[..., None, :, :], self.nugget)

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
