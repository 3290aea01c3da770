"""Hidden layers from whitened variables: the contract, and the standard way."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from ..linalg import lower_product, matmul, safe_cholesky, solve_lower
from ..typing import Array, Float, Int, RandomKey
from ._architectures import AbstractArchitecture, Known
from ._covariance import AbstractCovariance, Stationary

Whitened = tuple[Float[Array, "R W"], ...]
Values = tuple[Float[Array, "N W"], ...]
Variables = tuple[Float[Array, "_ _"], ...]
"""Whitened variables of the hidden layers and, where it is sampled too, of the top layer."""


class Prior(eqx.Module):
    """The deep GP: the architecture, the covariance of every layer, the top included, and the rows' inputs."""

    architecture: AbstractArchitecture
    bottom: Stationary
    upper: tuple[AbstractCovariance, ...]
    """Covariances of the second, third, … and, last, of the top layer."""
    x: Float[Array, "N D"]

    @property
    def middle(self) -> tuple[AbstractCovariance, ...]:
        """Covariances of all hidden layers but the first."""
        return self.upper[:-1]

    @property
    def top(self) -> AbstractCovariance:
        return self.upper[-1]

    def features(self, u: Float[Array, "N W"]) -> Float[Array, "N E"]:
        """Features at the rows, where the layer below is u."""
        return self.architecture.features(self.x, u, Known(self.x, u))

    def features_at(self, x: Float[Array, "K D"], u_at_x, u: Float[Array, "N W"]) -> Float[Array, "K E"]:
        """Features at x, where the layer below is u_at_x, and u at the rows."""
        return self.architecture.features(x, u_at_x, Known(self.x, u))


class Selected(NamedTuple):
    """Rows that a hidden layer may be built on: the inducing points, and the features of the top layer."""

    inducing: Int[Array, " M"] | None
    features: Float[Array, "S N E"]


class AbstractHidden(eqx.Module):
    """A way to make hidden layers of independent standard normal variables, one particle at a time."""

    @abc.abstractmethod
    def num_sites(self) -> int:
        """Whitened variables per output of a layer."""

    @abc.abstractmethod
    def values(self, prior: Prior, whitened: Whitened) -> Values:
        """Every hidden layer at all rows."""

    @abc.abstractmethod
    def whiten(self, prior: Prior, values: Values) -> Whitened:
        """Variables that represent these values, as well as they can be."""

    @abc.abstractmethod
    def at(self, prior: Prior, whitened: Whitened, x: Float[Array, "K D"], key: RandomKey) -> Float[Array, "K W"]:
        """The last hidden layer at new inputs."""


class AbstractHiddenMethod(eqx.Module):
    """Settings of a way to make hidden layers."""

    @abc.abstractmethod
    def check(self, num_inducing: int | None) -> None:
        """Raise an error if so many inducing points can't be used."""

    @abc.abstractmethod
    def build(self, prior: Prior, selected: Selected) -> AbstractHidden:
        """The hidden layers for these data; built anew after every maximisation step."""


class StandardHidden(AbstractHidden):
    """u_l = C_l ξ_l with C_l the Cholesky factor of the covariance between all rows."""

    root: Float[Array, "N N"]

    def num_sites(self):
        return self.root.shape[0]

    def values(self, prior, whitened):
        values = [lower_product(self.root, whitened[0])]
        for covariance, variables in zip(prior.middle, whitened[1:], strict=True):
            values.append(lower_product(_root(covariance, prior.features(values[-1])), variables))
        return tuple(values)

    def whiten(self, prior, values):
        whitened = [solve_lower(self.root, values[0])]
        for covariance, below, u in zip(prior.middle, values, values[1:], strict=False):
            whitened.append(solve_lower(_root(covariance, prior.features(below)), u))
        return tuple(whitened)

    def at(self, prior, whitened, x, key):
        """A draw of u(x) given u at the rows, layer by layer: independent from one x to the next."""
        values = self.values(prior, whitened)
        keys = jr.split(key, len(values))
        u = _draw(prior.bottom, self.root, prior.x, x, whitened[0], keys[0])
        for covariance, below, variables, layer_key in zip(prior.middle, values, whitened[1:], keys[1:], strict=False):
            known = prior.features(below)
            new = prior.features_at(x, u, below)
            u = _draw(covariance, _root(covariance, known), known, new, variables, layer_key)
        return u


class Standard(AbstractHiddenMethod):
    """Hidden layers sampled at all rows: O(N²) a step for one hidden layer, O(N³) for every further one."""

    def check(self, num_inducing):
        """Any number will do, and none."""

    def build(self, prior, selected):
        return StandardHidden(_root(prior.bottom, prior.x))


def _root(covariance: AbstractCovariance, features: Float[Array, "N E"]) -> Float[Array, "N N"]:
    return safe_cholesky(covariance(features, features)).factor


def _draw(covariance, root, known, new, whitened, key) -> Float[Array, "K W"]:
    """u(new) ~ N(aᵀξ, k − |a|²), a = C⁻¹k(known, new), where u(known) = Cξ."""
    a = solve_lower(root, covariance(known, new))
    left = jnp.maximum(covariance.variance - jnp.sum(a**2, axis=0), 0.0)
    noise = jr.normal(key, (new.shape[0], whitened.shape[1]), whitened.dtype)
    return matmul(a.T, whitened) + jnp.sqrt(left)[:, None] * noise
