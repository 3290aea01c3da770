"""Kernels of the scaled distance: RBF, Matérn, rational quadratic."""

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from ..parameters import AbstractParameter, as_positive
from ..typing import Array, Float
from ._base import AbstractKernel
from ._distance import scale_inputs, squared_distances, squared_distances_within
from ._matern_functions import exponential, linear_exponential, quadratic_exponential


class AbstractStationary(AbstractKernel):
    """variance · shape(r²) with r² = Σ_d (x_d − y_d)² / lengthscale_d²."""

    lengthscale: eqx.AbstractVar[AbstractParameter]
    variance: eqx.AbstractVar[AbstractParameter]
    smooth: ClassVar[bool] = False
    """Whether the correlation is a smooth function of r² at 0, unlike one of r."""

    @abc.abstractmethod
    def shape(self, r2: Float[Array, "*s"]) -> Float[Array, "*s"]:
        """The correlation as a function of the squared scaled distance; 1 at 0."""

    def cross(self, x, y):
        x, y = scale_inputs(x, self.lengthscale), scale_inputs(y, self.lengthscale)
        r2 = squared_distances(x, y, smooth=self.smooth)
        return self.variance.value[..., None, None] * self.shape(r2)

    def gram(self, x):
        r2 = squared_distances_within(scale_inputs(x, self.lengthscale))
        return self.variance.value[..., None, None] * self.shape(r2)

    def diag(self, x):
        r2 = jnp.zeros_like(scale_inputs(x, self.lengthscale)[..., :1])
        return self.variance.value[..., None] * self.shape(r2)[..., 0]


class RBF(AbstractStationary):
    """exp(−r²/2), also called squared exponential [Rasmussen & Williams 2006, eq. 4.9].

    >>> import jax.numpy as jnp
    >>> from dgpax.kernels import RBF
    >>> x = jnp.asarray([[0.0], [1.0]])
    >>> RBF(lengthscale=1.0).cross(x, x).round(3)
    Array([[1.   , 0.607],
           [0.607, 1.   ]], dtype=float64)
    >>> both = RBF([0.5, 2.0])  # a length scale per input
    """

    lengthscale: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    variance: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    smooth = True

    def shape(self, r2):
        return jnp.exp(-0.5 * r2)


class Matern12(AbstractStationary):
    """exp(−r) [Rasmussen & Williams 2006, eq. 4.18]."""

    lengthscale: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    variance: AbstractParameter = eqx.field(converter=as_positive, default=1.0)

    def shape(self, r2):
        return exponential(r2, 1.0)


class Matern32(AbstractStationary):
    """(1 + √3 r) exp(−√3 r) [Rasmussen & Williams 2006, eq. 4.17].

    >>> import jax.numpy as jnp
    >>> from dgpax.kernels import Matern32
    >>> kernel = 2.0 * Matern32(0.5).on(0) + Matern32(0.1).on(1)  # of two inputs
    >>> x = jnp.zeros((3, 2))
    >>> kernel.diag(x)
    Array([3., 3., 3.], dtype=float64)
    """

    lengthscale: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    variance: AbstractParameter = eqx.field(converter=as_positive, default=1.0)

    def shape(self, r2):
        return linear_exponential(r2, 3.0)


class Matern52(AbstractStationary):
    """(1 + √5 r + 5r²/3) exp(−√5 r) [Rasmussen & Williams 2006, eq. 4.17]."""

    lengthscale: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    variance: AbstractParameter = eqx.field(converter=as_positive, default=1.0)

    def shape(self, r2):
        return quadratic_exponential(r2, 5.0)


class RationalQuadratic(AbstractStationary):
    """(1 + r²/(2α))^(−α) [Rasmussen & Williams 2006, eq. 4.19]."""

    lengthscale: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    variance: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    alpha: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    smooth = True

    def shape(self, r2):
        alpha = self.alpha.value[..., None, None]
        return jnp.exp(-alpha * jnp.log1p(r2 / (2.0 * alpha)))
