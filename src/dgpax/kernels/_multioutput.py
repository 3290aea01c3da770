"""Covariances between several outputs."""

import abc

import equinox as eqx
import jax.numpy as jnp

from ..errors import InputError
from ..linalg import einsum
from ..parameters import AbstractParameter, as_positive, as_real, on_one_line, table
from ..typing import Array, Float
from ._base import AbstractKernel
from ._distance import scale_inputs, squared_distances


class AbstractMultiOutputKernel(eqx.Module):
    """The prior covariance of P outputs that depend on each other. Inputs have a process axis: [..., 1, N, D]."""

    def __repr__(self) -> str:
        return on_one_line(self)

    def _repr_html_(self) -> str:
        return table(self)._repr_html_()

    @property
    @abc.abstractmethod
    def num_outputs(self) -> int:
        """P."""

    @abc.abstractmethod
    def cross(self, x: Float[Array, "*b 1 N D"], y: Float[Array, "*b 1 M D"]) -> Float[Array, "*b P N P M"]:
        """Cov(f_p(x_n), f_q(y_m)) for all pairs."""

    @abc.abstractmethod
    def diag(self, x: Float[Array, "*b 1 N D"]) -> Float[Array, "*b P N"]:
        """Var f_p(x_n)."""

    @abc.abstractmethod
    def over_outputs(self, x: Float[Array, "*b 1 N D"]) -> Float[Array, "*b N P P"]:
        """Cov(f_p(x_n), f_q(x_n)), row by row."""


class LMC(AbstractMultiOutputKernel):
    """The linear model of coregionalisation: f = W g with Q independent latent processes [FRAMEWORK, eq. 40].

    `latent` has a process axis Q: a kernel whose parameters have a leading axis, or `Separate(k_1, …, k_Q)`. A plain
    kernel is shared by all latent processes, which is the intrinsic model (ICM) [FRAMEWORK, section 4.3.3].
    """

    latent: AbstractKernel
    mixing: AbstractParameter = eqx.field(converter=as_real)

    def __check_init__(self):
        if len(self.mixing.shape) != 2:
            raise InputError(f"LMC(mixing=...) needs shape (P outputs, Q processes); got {self.mixing.shape}.")

    @property
    def num_outputs(self) -> int:
        return self.mixing.shape[0]

    @property
    def num_latents(self) -> int:
        return self.mixing.shape[1]

    def _per_process(self, covariance: Float[Array, "..."], matrix_axes: int) -> Float[Array, "..."]:
        axis = covariance.ndim - 1 - matrix_axes
        if covariance.shape[axis] not in (1, self.num_latents):
            raise InputError(f"LMC mixes {self.num_latents} processes, but its kernel has {covariance.shape[axis]}.")
        shape = (*covariance.shape[:axis], self.num_latents, *covariance.shape[axis + 1 :])
        return jnp.broadcast_to(covariance, shape)

    def latent_cross(self, x: Float[Array, "*b 1 N D"], y: Float[Array, "*c 1 M D"]) -> Float[Array, "*d Q N M"]:
        """Cov(g_l(x_n), g_l(y_m)) of every latent process."""
        return self._per_process(self.latent.cross(x, y), 2)

    def cross(self, x, y):
        W = self.mixing.value
        return einsum("pl,ql,...lnm->...pnqm", W, W, self.latent_cross(x, y))

    def diag(self, x):
        return einsum("pl,...ln->...pn", self.mixing.value**2, self._per_process(self.latent.diag(x), 1))

    def over_outputs(self, x):
        W = self.mixing.value
        return einsum("pl,ql,...ln->...npq", W, W, self._per_process(self.latent.diag(x), 1))


class ProcessConvolution(AbstractMultiOutputKernel):
    """Outputs that smooth one latent process, f_p(x) = amplitude_p ∫ N(x − delay_p − s; 0, width_p²) g(s) ds.

    g has an RBF kernel, so everything is in closed form; delays shift outputs against each other
    [Álvarez, Rosasco & Lawrence 2012, section 5.2]. `width` and `delay` are [P, D], `amplitude` is [P].
    """

    width: AbstractParameter = eqx.field(converter=as_positive)
    delay: AbstractParameter = eqx.field(converter=as_real)
    amplitude: AbstractParameter = eqx.field(converter=as_real)
    lengthscale: AbstractParameter = eqx.field(converter=as_positive, default=1.0)
    variance: AbstractParameter = eqx.field(converter=as_positive, default=1.0)

    def __check_init__(self):
        P = self.amplitude.shape[0] if len(self.amplitude.shape) == 1 else -1
        if P < 1 or len(self.width.shape) != 2 or self.width.shape != self.delay.shape or self.width.shape[0] != P:
            raise InputError(
                "ProcessConvolution needs width and delay of shape (P, D) and amplitude of shape (P,); got "
                f"{self.width.shape}, {self.delay.shape}, {self.amplitude.shape}."
            )

    @property
    def num_outputs(self) -> int:
        return self.amplitude.shape[0]

    def _smoothed(self, x, y, widths):
        """variance Π_d √(ℓ²/s²) exp(−(x − y)²/(2s²)), s² = ℓ² + widths, for [..., N, D] against [..., M, D]."""
        square = jnp.broadcast_to(self.lengthscale.value**2, widths.shape[-1:])
        total = square + widths
        scale = jnp.sqrt(total)[..., None, :]
        factor = jnp.prod(jnp.sqrt(square / total), axis=-1)[..., None, None]
        return self.variance.value * factor * jnp.exp(-0.5 * squared_distances(x / scale, y / scale))

    def latent_gram(self, z: Float[Array, "*b M D"]) -> Float[Array, "*b M M"]:
        """Cov(g(z), g(z))."""
        return self.variance.value * jnp.exp(-0.5 * squared_distances(*(scale_inputs(z, self.lengthscale),) * 2))

    def latent_cross(self, z: Float[Array, "*b 1 M D"], x: Float[Array, "*b 1 N D"]) -> Float[Array, "*b P M N"]:
        """Cov(g(z_m), f_p(x_n))."""
        shifted = x - self.delay.value[:, None, :]
        return self.amplitude.value[:, None, None] * self._smoothed(z, shifted, self.width.value**2)

    def cross(self, x, y):
        delay, square = self.delay.value, self.width.value**2
        left, right = (x - delay[:, None, :])[..., :, None, :, :], (y - delay[:, None, :])[..., None, :, :, :]
        covariance = self._smoothed(left, right, square[:, None, :] + square[None, :, :])
        amplitude = self.amplitude.value
        return einsum("p,q,...pqnm->...pnqm", amplitude, amplitude, covariance)

    def diag(self, x):
        square = jnp.broadcast_to(self.lengthscale.value**2, self.width.shape[-1:])
        factor = jnp.prod(jnp.sqrt(square / (square + 2.0 * self.width.value**2)), axis=-1)
        return (self.variance.value * self.amplitude.value**2 * factor)[:, None] * jnp.ones_like(x[..., 0])

    def over_outputs(self, x):
        rows = x[..., 0, :, None, None, :]
        return self.cross(rows, rows)[..., :, 0, :, 0]
