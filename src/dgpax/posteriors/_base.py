"""The contract of a posterior over the inducing outputs of all layers."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from ..conditional import Projection
from ..data import Dataset
from ..distributions import Gaussian
from ..inducing import AbstractInducing
from ..layers import AbstractLayer, GPLayer
from ..linalg import AbstractRoot
from ..typing import Array, Float

Layers = tuple[AbstractLayer, ...]


class Carry(eqx.Module):
    """What is computed once per pass: the root of every GP layer's Kuu. Families that couple layers keep more."""

    roots: tuple[AbstractRoot | None, ...]

    def root(self, index: int) -> AbstractRoot:
        """The root of a GP layer's Kuu."""
        root = self.roots[index]
        if root is None:
            raise TypeError(f"Layer {index} has no inducing outputs.")
        return root

    def jitter(self) -> Float[Array, ""]:
        """The largest jitter that a factorisation needed."""
        return jnp.max(jnp.stack([jnp.max(root.jitter) for root in self.roots if root is not None]))


class Moments(NamedTuple):
    """E[A v] and a root of Cov[A v]: Cov(A_p(x) v, A_q(x') v) = spread_p(x) · spread_q(x')."""

    mean: Float[Array, "*b P N"]
    spread: Float[Array, "*b P N R"]


class AbstractPosterior(eqx.Module):
    """q(v_1 … v_L) over whitened inducing outputs, u_l = R_l v_l with R_l R_lᵀ = Kuu of layer l."""

    @abc.abstractmethod
    def begin(self, layers: Layers) -> Carry:
        """What doesn't depend on the inputs, once per pass."""

    @abc.abstractmethod
    def inducing(self, index: int, layer: GPLayer) -> AbstractInducing:
        """The inducing variables of a layer: its own, unless the family says otherwise."""

    @abc.abstractmethod
    def marginal(self, index: int, projection: Projection, carry: Carry) -> Gaussian:
        """q(f_l(x_n) | f_1 … f_{l−1}) for every row and process by itself, without the layer's mean function."""

    @abc.abstractmethod
    def moments(self, index: int, A: Float[Array, "*b Q N M"], carry: Carry) -> Moments:
        """What the inducing outputs add to all rows together, for joint distributions of one layer."""

    @abc.abstractmethod
    def latents(self, index: int, batch: Dataset) -> Gaussian:
        """q(w_n) of a layer of latent variables, for these rows of the training data."""

    @abc.abstractmethod
    def kl(self, layers: Layers, carry: Carry) -> Float[Array, ""]:
        """KL(q(v) || p(v)), inducing outputs only."""
