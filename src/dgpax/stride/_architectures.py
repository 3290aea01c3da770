"""What a layer is given the one below: composition, residual and injective composition, convolution."""

import abc
import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from ..errors import InputError
from ..kernels import AbstractStationary
from ..typing import Array, Float
from ..warps import monotone_integral
from ._covariance import AbstractCovariance, LocallyScaled, Stationary
from ._start import Start, coordinates, like, spread


class Known(NamedTuple):
    """Values u of a layer at inputs x."""

    x: Float[Array, "K D"]
    u: Float[Array, "K W"]


class AbstractArchitecture(eqx.Module):
    """How the covariance k(·, · | u) of a layer depends on the layer u below it: a covariance of features."""

    num_hidden: eqx.AbstractVar[int]
    lengthscale: eqx.AbstractVar[float]

    def __check_init__(self):
        if self.num_hidden < 1:
            raise InputError(f"A deep GP needs at least one hidden layer; got num_hidden={self.num_hidden}.")
        if not 0 < self.lengthscale < math.inf:
            raise InputError(
                f"The length scale of the hidden layers must be positive and finite; got {self.lengthscale}."
            )

    @abc.abstractmethod
    def covariance(self, kernel: AbstractStationary) -> AbstractCovariance:
        """The covariance of the features, made of a stationary kernel."""

    @abc.abstractmethod
    def features(self, x: Float[Array, "N D"], u: Float[Array, "N W"], known: Known) -> Float[Array, "N E"]:
        """Features at x, where the layer below is u; `known` is that layer where it was sampled."""

    @abc.abstractmethod
    def start(self, x: Float[Array, "N D"], kernel: AbstractStationary) -> Start:
        """Hidden values at which the top layer is stationary with this kernel on x, and the kernels of the layers."""

    def check(self, num_inputs: int) -> None:
        """Raise an error if inputs with so many columns can't be used."""


class Composition(AbstractArchitecture):
    """k(u(x), u(x′)): a layer is a function of the values of the one below [STRIDE, section 2.1].

    Hidden layers have `width` outputs; None means as many as there are inputs. They have the length scales that the
    top layer starts with, times a factor that brings the rows to a root mean square distance of 1/`lengthscale` from
    their centre: with as many outputs as inputs and lengthscale 1, a draw keeps distances, on average.
    """

    num_hidden: int = eqx.field(static=True, default=1)
    width: int | None = eqx.field(static=True, default=None)
    lengthscale: float = eqx.field(static=True, default=1.0)

    def __check_init__(self):
        if self.width is not None and self.width < 1:
            raise InputError(f"Composition(width=...) must be at least 1; got {self.width}.")

    def covariance(self, kernel):
        return Stationary(kernel)

    def features(self, x, u, known):
        return u

    def start(self, x, kernel):
        u, scales = coordinates(x, kernel.lengthscale.value, self.width)
        unit = self.lengthscale * spread(x, kernel.lengthscale.value)
        bottom = like(kernel, unit * kernel.lengthscale.value, 1.0)
        return Start(u, bottom, like(kernel, unit * scales, 1.0), like(kernel, scales, kernel.variance.value))


class Residual(AbstractArchitecture):
    """k(x + u(x), x′ + u(x′)): a hidden layer displaces the inputs. Not in the paper.

    Composition's hidden layers have mean 0, so that the prior knows nothing of the inputs' order and a layer of low
    rank can't even hold the inputs. Here the layers have mean x: the top layer starts stationary exactly, whatever the
    rank, and `variance` says how far, in standard deviations of the inputs squared, a displacement goes.
    """

    num_hidden: int = eqx.field(static=True, default=1)
    variance: float = eqx.field(static=True, default=1.0)
    lengthscale: float = eqx.field(static=True, default=1.0)

    def __check_init__(self):
        if not 0 < self.variance < math.inf:
            raise InputError(f"Residual(variance=...) must be positive and finite; got {self.variance}.")

    def covariance(self, kernel):
        return Stationary(kernel)

    def features(self, x, u, known):
        return x + u

    def start(self, x, kernel):
        unit = self.lengthscale * spread(x, kernel.lengthscale.value)
        hidden = like(kernel, unit * kernel.lengthscale.value, self.variance)
        return Start(jnp.zeros_like(x), hidden, hidden, kernel)


class SquaredClip(eqx.Module):
    """h(z) = min(max(z, u_min), u_max)², as the local length ℓ = √h [STRIDE, section 2.1]."""

    u_min: float = 0.1
    u_max: float = math.inf

    def __check_init__(self):
        if not 0 < self.u_min < self.u_max:
            raise InputError(
                f"The bounds of a link must satisfy 0 < u_min < u_max; got u_min={self.u_min}, u_max={self.u_max}."
            )

    def __call__(self, u: Float[Array, "*s"]) -> Float[Array, "*s"]:
        return jnp.clip(u, self.u_min, self.u_max)


class Convolution(AbstractArchitecture):
    """A layer's local length scale is a positive function of the layer below, which has one output.

    `link` maps values to local lengths ℓ = √h, in units of the length scale that the top layer starts with; it must
    map 1 to 1 for that start to be stationary with that length. The hidden layers' `lengthscale` is as in Composition.
    """

    num_hidden: int = eqx.field(static=True, default=1)
    link: Callable[[Float[Array, "*s"]], Float[Array, "*s"]] = SquaredClip(0.1, 10.0)
    lengthscale: float = eqx.field(static=True, default=1.0)

    def covariance(self, kernel):
        return LocallyScaled(kernel)

    def features(self, x, u, known):
        return jnp.concatenate([x, self.link(u)], axis=1)

    def start(self, x, kernel):
        unit = self.lengthscale * spread(x, kernel.lengthscale.value)
        hidden = like(kernel, unit * kernel.lengthscale.value, 1.0)
        return Start(jnp.ones_like(x[:, :1]), hidden, hidden, kernel)


class Injective(AbstractArchitecture):
    """k(g(x), g(x′)) with g(x) = ∫ max(u(z), u_min)² dz from the least input to x [STRIDE, eq. 2].

    g is strictly increasing, so no two inputs are ever identified; for one input only. `lengthscale` is that of the
    hidden layers in units of the length scale that the top layer starts with.
    """

    num_hidden: int = eqx.field(static=True, default=1)
    u_min: float = eqx.field(static=True, default=0.3)
    lengthscale: float = eqx.field(static=True, default=0.3)

    def __check_init__(self):
        if not 0 < self.u_min < 1:
            raise InputError(
                f"Injective(u_min=...) must lie between 0 and 1, where the hidden layers start; got {self.u_min}."
            )

    def covariance(self, kernel):
        return Stationary(kernel)

    def features(self, x, u, known):
        rates = jnp.maximum(known.u[:, 0], self.u_min) ** 2
        return monotone_integral(known.x[:, 0], rates, x[:, 0])[:, None]

    def start(self, x, kernel):
        hidden = like(kernel, self.lengthscale * kernel.lengthscale.value, 1.0)
        return Start(jnp.ones_like(x[:, :1]), hidden, hidden, kernel)

    def check(self, num_inputs):
        if num_inputs != 1:
            raise InputError(
                f"The injective architecture integrates along one input; the data has {num_inputs}. "
                "Use Composition or Convolution."
            )
