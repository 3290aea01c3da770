"""The contract of a posterior over the inducing outputs of all layers."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp

from ..conditional import Projection
from ..data import Dataset
from ..distributions import Gaussian, GaussianOverOutputs
from ..inducing import AbstractInducing
from ..layers import GPLayer
from ..layers import Layers as Layers
from ..linalg import AbstractRoot, einsum, matmul, safe_cholesky
from ..typing import Array, Float, RandomKey


class AbstractCarry(eqx.Module):
    """What a pass through the layers carries along: the root of every GP layer's Kuu, computed once."""

    roots: eqx.AbstractVar[tuple[AbstractRoot | None, ...]]

    def root(self, index: int) -> AbstractRoot:
        """The root of a GP layer's Kuu."""
        root = self.roots[index]
        if root is None:
            raise TypeError(f"Layer {index} has no inducing outputs.")
        return root

    def jitter(self) -> Float[Array, ""]:
        """The largest jitter that a factorisation needed."""
        return jnp.max(jnp.stack([jnp.max(root.jitter) for root in self.roots if root is not None]))


class Carry(AbstractCarry):
    """For families whose layers are independent: nothing has to be remembered from layer to layer."""

    roots: tuple[AbstractRoot | None, ...]


class Moments(NamedTuple):
    """E[A v] and a root of Cov[A v] of one process: Cov(A(x) v, A(x') v) = spread(x) · spread(x')."""

    mean: Float[Array, "*b P N"]
    spread: Float[Array, "*b P N R"]


class AbstractPosterior(eqx.Module):
    """q(v_1 … v_L) over whitened inducing outputs, u_l = R_l v_l with R_l R_lᵀ = Kuu of layer l.

    `marginal`, `jointly` and `draw` are of the processes of a layer at every row by itself, without the layer's mean
    function, given what was drawn of the layers before; the carry, an AbstractCarry of the family's own kind, knows it.
    """

    @abc.abstractmethod
    def begin(self, layers: Layers) -> AbstractCarry:
        """What doesn't depend on the inputs, once per pass."""

    @abc.abstractmethod
    def inducing(self, index: int, layer: GPLayer, carry: Any) -> AbstractInducing:
        """The inducing variables of a layer: its own, unless the family says otherwise."""

    @abc.abstractmethod
    def marginal(self, index: int, projection: Projection, carry: Any) -> Gaussian:
        """q(f_l(x_n) | f_1 … f_{l−1}) for every row and process by itself."""

    @abc.abstractmethod
    def jointly(self, index: int, projection: Projection, carry: Any) -> Gaussian | GaussianOverOutputs:
        """The same with the covariance between the processes of a row, where they depend on each other."""

    @abc.abstractmethod
    def draw(
        self, index: int, projection: Projection, noise: Float[Array, "*b N Q"], carry: Any
    ) -> tuple[Float[Array, "*b N Q"], Any]:
        """A draw by standard normal numbers, and the carry that remembers it for the layers behind."""

    @abc.abstractmethod
    def moments(self, index: int, A: Float[Array, "*b Q N M"], carry: Any) -> Moments:
        """What the inducing outputs add to all rows together, whatever the other layers are."""

    @abc.abstractmethod
    def tractable(self, key: RandomKey, shape: tuple[int, ...]) -> "AbstractPosterior":
        """Something under which every layer given those before is Gaussian, for bounds and predictions: itself, or
        draws with these leading axes where the inducing outputs can't be integrated out."""

    @abc.abstractmethod
    def layerwise(self, key: RandomKey, shape: tuple[int, ...]) -> "AbstractLayerwise":
        """Something under which layers are independent, for distributions over several rows: itself, or draws of the
        inducing outputs of all layers with these leading axes."""

    def suitable_samples(self, wanted: int) -> int:
        """How many samples a prediction has, if so many are wanted."""
        return wanted

    @abc.abstractmethod
    def latents(self, index: int, batch: Dataset) -> Gaussian:
        """q(w_n) of a layer of latent variables, for these rows of the training data."""

    @abc.abstractmethod
    def kl(self, layers: Layers, carry: Any) -> Float[Array, ""]:
        """KL(q(v) || p(v)), inducing outputs only."""


class AbstractLayerwise(AbstractPosterior):
    """A family whose layers, and processes with inducing outputs of their own, are independent of each other."""

    def jointly(self, index, projection, carry):
        if projection.between is None:
            return self.marginal(index, projection, carry)
        moments = self.moments(index, projection.A, carry)
        covariance = projection.between + einsum("...pnr,...qnr->...npq", moments.spread, moments.spread)
        return GaussianOverOutputs(moments.mean.mT, covariance)

    def draw(self, index, projection, noise, carry):
        q = self.jointly(index, projection, carry)
        if isinstance(q, Gaussian):
            return q.mean + q.stddev * noise, carry
        return q.mean + matmul(safe_cholesky(q.covariance).factor, noise[..., None])[..., 0], carry

    def tractable(self, key, shape):
        return self

    def layerwise(self, key, shape):
        return self
