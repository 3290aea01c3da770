"""Hidden layers from whitened variables: the contract, and the standard way."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from ..linalg import lower_product, matmul, safe_cholesky, solve_lower
from ..typing import Array, Float, Int, Scalar
from ._architectures import AbstractArchitecture, Known
from ._covariance import AbstractCovariance, Stationary
from ._spread import Conditional, Spread

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

    jitter: eqx.AbstractVar[Scalar]
    """What it took to factorise the first layer's covariance."""

    @abc.abstractmethod
    def sites(self) -> Int[Array, " R"]:
        """The rows at which layers have whitened variables."""

    @abc.abstractmethod
    def values(self, prior: Prior, whitened: Whitened) -> Values:
        """Every hidden layer at all rows."""

    @abc.abstractmethod
    def whiten(self, prior: Prior, values: Values) -> Whitened:
        """Variables that represent these values, as well as they can be."""

    @abc.abstractmethod
    def at(self, prior: Prior, whitened: Whitened, x: Float[Array, "K D"], spread: Spread) -> Float[Array, "K W"]:
        """The last hidden layer at new inputs; `spread` draws what the whitened variables leave open there."""

    def largest_jitter(self, prior: Prior, whitened: Whitened) -> Scalar:
        """Of the factorisations that a particle takes."""
        layers = zip(prior.middle, self.values(prior, whitened), strict=False)
        sites = ((covariance, prior.features(below)[self.sites()]) for covariance, below in layers)
        return jnp.max(jnp.stack([self.jitter, *(safe_cholesky(k(f, f)).jitter for k, f in sites)]))


class AbstractHiddenMethod(eqx.Module):
    """Settings of a way to make hidden layers."""

    def check(self, num_inducing: int | None) -> None:
        """Raise an error if so many inducing points can't be used."""

    @abc.abstractmethod
    def build(self, prior: Prior, selected: Selected) -> AbstractHidden:
        """The hidden layers for these data; built anew after every maximisation step."""


class StandardHidden(AbstractHidden):
    """u_l = C_l ξ_l with C_l the Cholesky factor of the covariance between all rows."""

    root: Float[Array, "N N"]
    jitter: Scalar

    def sites(self):
        return jnp.arange(self.root.shape[0])

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

    def at(self, prior, whitened, x, spread):
        """u(x) given u = Cξ at the rows, layer by layer: aᵀξ and what is left open, a = C⁻¹k(rows, x)."""
        values = self.values(prior, whitened)
        u = _conditioned(0, prior.bottom, self.root, prior.x, x, whitened[0], spread)
        layers = zip(prior.middle, values, whitened[1:], strict=False)
        for index, (covariance, below, variables) in enumerate(layers, start=1):
            known, new = prior.features(below), prior.features_at(x, u, below)
            u = _conditioned(index, covariance, _root(covariance, known), known, new, variables, spread)
        return u


class Standard(AbstractHiddenMethod):
    """Hidden layers sampled at all rows: O(N²) a step for one hidden layer, O(N³) for every further one."""

    def build(self, prior, selected):
        return StandardHidden(*safe_cholesky(prior.bottom(prior.x, prior.x))[:2])


def _root(covariance: AbstractCovariance, features: Float[Array, "N E"]) -> Float[Array, "N N"]:
    return safe_cholesky(covariance(features, features)).factor


def _conditioned(index: int, covariance, root, known, new, whitened, spread: Spread) -> Float[Array, "K W"]:
    a = solve_lower(root, covariance(known, new))
    return matmul(a.T, whitened) + spread(index, Conditional(covariance, known, root, new, a))
