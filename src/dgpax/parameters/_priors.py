"""Hyper-priors, on the constrained value of a parameter."""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from ..errors import InputError
from ..typing import Array, Float, RandomKey


def _require_positive(**arguments: float) -> None:
    for name, value in arguments.items():
        if not value > 0:
            raise InputError(f"A prior's {name} must be positive; got {value}.")


class AbstractPrior(eqx.Module):
    """A distribution over each entry of a parameter, independently."""

    @abc.abstractmethod
    def log_prob(self, value: Float[Array, "..."]) -> Float[Array, "..."]:
        """Log density of every entry."""

    @abc.abstractmethod
    def sample(self, key: RandomKey, shape: tuple[int, ...]) -> Float[Array, "..."]:
        """Independent draws."""


class NormalPrior(AbstractPrior):
    """N(mean, scale²)."""

    mean: float = eqx.field(static=True, converter=float)
    scale: float = eqx.field(static=True, converter=float)

    def __check_init__(self):
        _require_positive(scale=self.scale)

    def log_prob(self, value):
        return jax.scipy.stats.norm.logpdf(value, self.mean, self.scale)

    def sample(self, key, shape):
        return self.mean + self.scale * jr.normal(key, shape)


class LogNormalPrior(AbstractPrior):
    """log(value) ~ N(mean, scale²)."""

    mean: float = eqx.field(static=True, converter=float)
    scale: float = eqx.field(static=True, converter=float)

    def __check_init__(self):
        _require_positive(scale=self.scale)

    def log_prob(self, value):
        inside = value > 0
        log = jnp.log(jnp.where(inside, value, 1.0))
        return jnp.where(inside, jax.scipy.stats.norm.logpdf(log, self.mean, self.scale) - log, -jnp.inf)

    def sample(self, key, shape):
        return jnp.exp(self.mean + self.scale * jr.normal(key, shape))


class GammaPrior(AbstractPrior):
    """Gamma with shape `concentration` and inverse scale `rate`."""

    concentration: float = eqx.field(static=True, converter=float)
    rate: float = eqx.field(static=True, converter=float)

    def __check_init__(self):
        _require_positive(concentration=self.concentration, rate=self.rate)

    def log_prob(self, value):
        return jax.scipy.stats.gamma.logpdf(value, self.concentration, scale=1.0 / self.rate)

    def sample(self, key, shape):
        return jr.gamma(key, self.concentration, shape) / self.rate


class HalfNormalPrior(AbstractPrior):
    """|z| with z ~ N(0, scale²)."""

    scale: float = eqx.field(static=True, converter=float)

    def __check_init__(self):
        _require_positive(scale=self.scale)

    def log_prob(self, value):
        return jnp.where(value >= 0, jnp.log(2.0) + jax.scipy.stats.norm.logpdf(value, 0.0, self.scale), -jnp.inf)

    def sample(self, key, shape):
        return jnp.abs(self.scale * jr.normal(key, shape))
