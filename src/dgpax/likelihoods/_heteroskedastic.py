"""Gaussian noise whose variance is a latent function."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from numpy.typing import ArrayLike

from ..distributions import Gaussian, GaussianOverOutputs
from ..typing import Array, Float, RandomKey
from ._base import AbstractLikelihood, AnyGaussian
from ._dependent import log_density_together
from ._gaussian import log_normal
from ._integrals import LOG_2PI, log_expectation, positive
from ._missing import sum_observed
from ._support import REAL, check_support

NODES = 7


class HeteroskedasticGaussian(AbstractLikelihood):
    """y = f + N(0, exp(g)). Two latent functions per output: the first P are the means f, the last P the log noise
    variances g   [Goldberg et al. 1998; Lázaro-Gredilla & Titsias 2011]."""

    quadrature_order: int = eqx.field(static=True, default=20)
    in_any_units = True

    def num_latents(self, num_outputs: int) -> int:
        return 2 * num_outputs

    def log_prob(self, f: Float[Array, "*batch N Q"], y: Float[Array, "*#batch N P"]) -> Float[Array, "*batch N"]:
        mean, log_noise = jnp.split(f, 2, axis=-1)
        return sum_observed(lambda y: log_normal(y - mean, jnp.exp(log_noise)), y, REAL.member)

    def for_expectation(self, outputs) -> AnyGaussian:
        return outputs.by_row()

    def expected_log_prob(self, q: AnyGaussian, y: Float[Array, "*#batch N P"]) -> Float[Array, "*batch N"]:
        """−½ (log 2π + E g + ((y − E f + c)² + Var f) E[exp(−g)]), c = Cov(f, g), E[exp(−g)] = exp(−E g + ½ Var g)
        [Lázaro-Gredilla & Titsias 2011, where c = 0]: exp(−g) in the expectation moves the mean of f by −c."""
        f, g, c = _split(q)
        inverse_noise = jnp.exp(-g.mean + 0.5 * g.variance)

        def expected_log_density(y):
            return -0.5 * (LOG_2PI + g.mean + ((y - f.mean + c) ** 2 + f.variance) * inverse_noise)

        return sum_observed(expected_log_density, y, REAL.member)

    def predictive_log_prob(self, q: AnyGaussian, y: Float[Array, "*#batch N P"]) -> Float[Array, "*batch N"]:
        """log E_g[N(y; E f, Var f + exp(g))]: f in closed form, g by Gauss-Hermite quadrature."""
        if isinstance(q, GaussianOverOutputs):
            return log_density_together(self, q, y)
        f, g, _ = _split(q)

        def predictive_log_density(y):
            return log_expectation(
                lambda g: log_normal(y - f.mean, f.variance + jnp.exp(g)),
                g.mean,
                positive(g.variance),
                self.quadrature_order,
            )

        return sum_observed(predictive_log_density, y, REAL.member)

    def conditional_mean(self, f: Float[Array, "*batch N Q"]) -> Float[Array, "*batch N P"]:
        return jnp.split(f, 2, axis=-1)[0]

    def conditional_variance(self, f: Float[Array, "*batch N Q"]) -> Float[Array, "*batch N P"]:
        return jnp.exp(jnp.split(f, 2, axis=-1)[1])

    def predictive_mean(self, q: AnyGaussian) -> Float[Array, "*batch N P"]:
        return jnp.split(q.mean, 2, axis=-1)[0]

    def predictive_variance(self, q: AnyGaussian) -> Float[Array, "*batch N P"]:
        f, g, _ = _split(q)
        return f.variance + jnp.exp(g.mean + 0.5 * g.variance)

    def components(self, q: AnyGaussian) -> Gaussian:
        """One for every draw of f and each of some equally probable values of the noise."""
        from scipy.special import ndtri

        f, g, c = _split(q)
        z = ndtri((np.arange(NODES) + 0.5) / NODES).reshape(-1, *([1] * f.mean.ndim))
        slope = c / jnp.sqrt(positive(g.variance))
        variance = jnp.maximum(f.variance - slope**2, 0.0) + jnp.exp(g.mean + z * g.stddev)
        mean = jnp.broadcast_to(f.mean + slope * z, variance.shape)
        return Gaussian(*(part.reshape(-1, *part.shape[-2:]) for part in (mean, variance)))

    def sample(self, key: RandomKey, f: Float[Array, "*batch N Q"]) -> Float[Array, "*batch N P"]:
        mean, log_noise = jnp.split(f, 2, axis=-1)
        return mean + jnp.exp(0.5 * log_noise) * jr.normal(key, mean.shape, mean.dtype)

    def check_targets(self, y: ArrayLike) -> None:
        check_support(y, REAL, type(self).__name__)


def _split(q: AnyGaussian) -> tuple[Gaussian, Gaussian, Float[Array, "*batch N P"]]:
    """q(f), q(g), and the covariance of the two of every output."""
    (f, g), (f_variance, g_variance) = (jnp.split(part, 2, axis=-1) for part in (q.mean, q.variance))
    if isinstance(q, Gaussian):
        between = jnp.zeros_like(f)
    else:
        between = jnp.diagonal(q.covariance, offset=f.shape[-1], axis1=-2, axis2=-1)
    return Gaussian(f, f_variance), Gaussian(g, g_variance), between
