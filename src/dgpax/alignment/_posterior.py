"""What is believed about warps and functions together."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from ..linalg import InverseRoot, log_diagonal, matmul
from ..parameters import AbstractParameter, as_lower_triangular, as_real
from ..typing import Array, Float
from ..warps import IncreasingFunctions
from ._model import WarpedModel


class FunctionsGivenWarps(NamedTuple):
    """Inducing outputs of the functions, whitened, given a draw of the warps: v ~ N(mean, spread·spreadᵀ)."""

    locations: Float[Array, "J M"]
    root: InverseRoot
    mean: Float[Array, " R"]
    spread: Float[Array, "R R"]


class WarpOutputs(eqx.Module):
    """A Gaussian over the whitened inducing outputs of all warps, in independent blocks: one per warp, or one of all.

    v = mean + root ξ, with ξ standard normal, [J, M] in all.
    """

    mean: AbstractParameter = eqx.field(converter=as_real)
    root: AbstractParameter = eqx.field(converter=as_lower_triangular)

    @classmethod
    def near_identity(cls, num_warps: int, num_inducing: int, num_blocks: int, scale: float, dtype) -> "WarpOutputs":
        """Warps near the identity, with standard deviations of `scale` of the prior's."""
        size = num_warps * num_inducing // num_blocks
        root = jnp.broadcast_to(scale * jnp.eye(size, dtype=dtype), (num_blocks, size, size))
        return cls(jnp.zeros((num_blocks, size), dtype), root)

    def draw(self, noise: Float[Array, "J M"]) -> Float[Array, "J M"]:
        """By standard normal numbers."""
        blocks = noise.reshape(self.mean.shape)
        return (self.mean.value + matmul(self.root.value, blocks[..., None])[..., 0]).reshape(noise.shape)

    def kl(self) -> Float[Array, ""]:
        """KL(q(v) || N(0, I)) = KL(q(u) || p(u)) of the inducing outputs u, log determinants included."""
        return _standard_kl(self.mean.value, self.root.value)


class AbstractWarpedPosterior(eqx.Module):
    """q(v_1 … v_J) over the inducing outputs of the warps, and q(w | v) over those of the functions."""

    warps: eqx.AbstractVar[WarpOutputs]

    @abc.abstractmethod
    def functions(
        self, model: WarpedModel, warps: IncreasingFunctions, noise: Float[Array, "J M"]
    ) -> FunctionsGivenWarps:
        """q(w | v) for the warps that were drawn by this noise."""

    @abc.abstractmethod
    def functions_kl(self, given: FunctionsGivenWarps) -> Float[Array, ""]:
        """What the functions add to the KL; an estimate of it where their locations are drawn."""


class FixedLocations(AbstractWarpedPosterior):
    """Inducing outputs of the functions at fixed locations; whitened, w = Root·v_f [CU, section 4.1].

    One Gaussian with the warps, v_f = mean + coupling·ξ + root·η with the ξ of the warps; without a coupling the mean
    field.
    """

    warps: WarpOutputs
    locations: Float[Array, "J M"]
    mean: AbstractParameter = eqx.field(converter=as_real)
    root: AbstractParameter = eqx.field(converter=as_lower_triangular)
    coupling: AbstractParameter | None = None

    def functions(self, model, warps, noise):
        coupled = 0.0 if self.coupling is None else matmul(self.coupling.value, noise.reshape(-1))
        return FunctionsGivenWarps(
            self.locations, model.root(self.locations), self.mean.value + coupled, self.root.value
        )

    def functions_kl(self, given):
        kl = _standard_kl(self.mean.value, self.root.value)
        return kl if self.coupling is None else kl + 0.5 * jnp.sum(self.coupling.value**2)


class DrawnLocations(AbstractWarpedPosterior):
    """The inducing outputs of f_j are what the composition is at times z, w_j = f_j(g_j(z_j)), and their locations
    g_j(z_j) are drawn with the warps [CU, section 4.2]: whatever the warp, the composition goes through w."""

    warps: WarpOutputs
    times: Float[Array, "J M"]
    mean: AbstractParameter = eqx.field(converter=as_real)
    root: AbstractParameter = eqx.field(converter=as_lower_triangular)

    def functions(self, model, warps, noise):
        locations = warps(self.times)
        root = model.root(locations)
        mean = root.solve(self.mean.value[:, None])[:, 0]
        return FunctionsGivenWarps(locations, root, mean, root.solve(self.root.value))

    def functions_kl(self, given):
        """KL(q(w) || p(w | locations)) for the locations of this draw [CU, eq. 23]: that of the whitened outputs."""
        return _standard_kl(given.mean, given.spread)


def _standard_kl(mean: Float[Array, "*b M"], root: Float[Array, "*b M M"]) -> Float[Array, ""]:
    """Σ KL(N(m, RRᵀ) || N(0, I)) = ½ (|m|² + |R|² − M) − log|det R|."""
    return 0.5 * (jnp.sum(mean**2) + jnp.sum(root**2) - mean.size) - jnp.sum(log_diagonal(root))
