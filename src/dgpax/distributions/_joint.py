"""Gaussians with a full covariance over inputs, over outputs or over both: Table 2 of the framework paper.

Table 2 of van der Wilk et al. 2020, "A framework for interdomain and multioutput Gaussian processes", lists the
shapes that GPflow asks for with two booleans; here each has its own type. (`Gaussian` is the fourth.)
"""

import abc

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from ..errors import InputError
from ..linalg import einsum, safe_cholesky, solve_lower
from ..typing import Array, ArrayLike, Float, RandomKey
from ._base import safe_sqrt
from ._gaussian import LOG_2PI, Gaussian


class AbstractJointGaussian(eqx.Module):
    """Independent groups of entries, each jointly normal with E members; a subclass says which axes E is."""

    mean: eqx.AbstractVar[Float[Array, "*batch N P"]]
    covariance: eqx.AbstractVar[Float[Array, "..."]]

    @abc.abstractmethod
    def _events(self, values: Float[Array, "*shape N P"]) -> Float[Array, "..."]:
        """[..., N, P] to [..., E], the jointly distributed axes last and as one."""

    @abc.abstractmethod
    def _entries(self, events: Float[Array, "..."]) -> Float[Array, "*shape N P"]:
        """The inverse of `_events`."""

    @property
    @abc.abstractmethod
    def _event_covariance(self) -> Float[Array, "*groups E E"]: ...

    @property
    def variance(self) -> Float[Array, "*batch N P"]:
        return self._entries(jnp.diagonal(self._event_covariance, axis1=-2, axis2=-1))

    @property
    def stddev(self) -> Float[Array, "*batch N P"]:
        return safe_sqrt(self.variance)

    def marginal(self) -> Gaussian:
        """Each entry alone."""
        return Gaussian(self.mean, self.variance)

    def log_prob(self, y: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        """Joint log density, −½ (E log 2π + |L⁻¹(y − mean)|²) − log|L| with LLᵀ the covariance."""
        factor = safe_cholesky(self._event_covariance).factor
        whitened = solve_lower(factor, self._events(jnp.subtract(y, self.mean))[..., None])[..., 0]
        log_det = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
        return -0.5 * (whitened.shape[-1] * LOG_2PI + jnp.sum(whitened**2, axis=-1)) - log_det

    def sample(self, key: RandomKey, num_samples: int) -> Float[Array, "num_samples *batch N P"]:
        """Independent joint draws, along a new leading axis."""
        factor = safe_cholesky(self._event_covariance).factor
        noise = jr.normal(key, (num_samples, *factor.shape[:-1]), factor.dtype)
        return self.mean + self._entries(einsum("...ij,...j->...i", factor, noise))

    def affine(self, shift: Float[ArrayLike, "..."], scale: Float[ArrayLike, "..."]) -> "AbstractJointGaussian":
        """The distribution of shift + scale · Y."""
        shift, scale = jnp.asarray(shift, self.mean.dtype), jnp.asarray(scale, self.mean.dtype)
        s = self._events(jnp.broadcast_to(scale, self.mean.shape))
        covariance = s[..., :, None] * s[..., None, :] * self._event_covariance
        return type(self)(shift + scale * self.mean, covariance.reshape(self.covariance.shape))


class GaussianOverInputs(AbstractJointGaussian):
    """One multivariate normal over the N inputs per output; `log_prob` has shape [*batch, P]."""

    mean: Float[Array, "*batch N P"]
    covariance: Float[Array, "*batch P N N"]

    def __check_init__(self):
        *batch, N, P = self.mean.shape
        _check_covariance(self, (*batch, P, N, N), "[*batch, P, N, N]")

    def _events(self, values):
        return jnp.swapaxes(values, -1, -2)

    def _entries(self, events):
        return jnp.swapaxes(events, -1, -2)

    @property
    def _event_covariance(self):
        return self.covariance


class GaussianOverOutputs(AbstractJointGaussian):
    """One multivariate normal over the P outputs per input; `log_prob` has shape [*batch, N]."""

    mean: Float[Array, "*batch N P"]
    covariance: Float[Array, "*batch N P P"]

    def __check_init__(self):
        _check_covariance(self, (*self.mean.shape, self.mean.shape[-1]), "[*batch, N, P, P]")

    @classmethod
    def of(cls, q: "Gaussian | GaussianOverOutputs") -> "GaussianOverOutputs":
        """Of independent outputs too, zeros included."""
        if isinstance(q, cls):
            return q
        return cls(q.mean, q.variance[..., None] * jnp.eye(q.mean.shape[-1], dtype=q.mean.dtype))

    def _events(self, values):
        return values

    def _entries(self, events):
        return events

    @property
    def _event_covariance(self):
        return self.covariance


class GaussianOverBoth(AbstractJointGaussian):
    """One multivariate normal over all N·P entries; `log_prob` has shape [*batch]."""

    mean: Float[Array, "*batch N P"]
    covariance: Float[Array, "*batch N P N P"]

    def __check_init__(self):
        _check_covariance(self, (*self.mean.shape, *self.mean.shape[-2:]), "[*batch, N, P, N, P]")

    def _events(self, values):
        return values.reshape(*values.shape[:-2], -1)

    def _entries(self, events):
        return events.reshape(*events.shape[:-1], *self.mean.shape[-2:])

    @property
    def _event_covariance(self):
        *batch, N, P = self.mean.shape
        return self.covariance.reshape(*batch, N * P, N * P)


def _check_covariance(distribution: AbstractJointGaussian, wanted: tuple[int, ...], words: str) -> None:
    if distribution.covariance.shape != wanted:
        raise InputError(
            f"{type(distribution).__name__} with a mean of shape {distribution.mean.shape} needs a covariance of "
            f"shape {words} = {wanted}; got {distribution.covariance.shape}."
        )
